// Histories: many connections work on few keys while the server is killed and started again, and what
// they saw must be what some order of their operations on one copy of the data answers (linearizability,
// checked by porcupine). Nothing that was answered may be lost by a kill -9, whatever appendfsync says.
//
//	histories -server ingot-server -dir empty-folder [-seconds 2] [-kills 2] [-seed 1] [-- --engine leveldb ...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

const (
	clients      = 8
	families     = 6
	checkTimeout = 2 * time.Minute
	startTimeout = 30 * time.Second
)

// Of text, counter and list.
const (
	changeScriptText = `local number = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1])
return {number, redis.call('RPUSH', KEYS[3], ARGV[1])}`
	readScriptText = `return {redis.call('GET', KEYS[1]) or '', tonumber(redis.call('GET', KEYS[2]) or 0), redis.call('LRANGE', KEYS[3], 0, -1)}`
	moveScriptText = `local first = redis.call('LPOP', KEYS[3])
if first then redis.call('SET', KEYS[1], first) end
return first`
)

var ctx = context.Background()

func fail(text string, details ...any) {
	fmt.Fprintf(os.Stderr, text+"\n", details...)
	os.Exit(1)
}

type server struct {
	binary, dir string
	options     []string
	port        int
	process     *exec.Cmd
}

func (s *server) start() {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fail("%v", err)
	}
	defer log.Close()
	s.process = exec.Command(s.binary, append([]string{"--port", strconv.Itoa(s.port), "--dir", s.dir}, s.options...)...)
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		fail("%v", err)
	}
	c := s.client()
	defer c.Close()
	for begin := time.Now(); c.Ping(ctx).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > startTimeout {
			fail("the server does not answer; see %s", log.Name())
		}
	}
}

func (s *server) kill() {
	s.process.Process.Kill()
	s.process.Wait()
}

// One connection, on which nothing is sent twice.
func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + strconv.Itoa(s.port), PoolSize: 1, MaxRetries: -1, ReadTimeout: startTimeout,
	})
}

// Below the ports that connections are given for themselves: one of them would have it when the
// server starts again.
func freePort() int {
	random := rand.New(rand.NewSource(time.Now().UnixNano()))
	for {
		port := 10_000 + random.Intn(22_000)
		if listener, err := net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			listener.Close()
			return port
		}
	}
}

// Whether the server may have seen the command that ended so.
func neverSent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// perform runs one operation. The error is nil, or the server's end.
func perform(c *redis.Client, in input) (output, error) {
	text, counter, list := fmt.Sprintf("t:%d", in.family), fmt.Sprintf("c:%d", in.family), fmt.Sprintf("l:%d", in.family)
	keys := []string{text, counter, list}
	out := output{known: true}
	var err error
	absent := func(e error) error {
		if e == redis.Nil {
			return nil
		}
		return e
	}
	joined := func(elements []string) string {
		if len(elements) == 0 {
			return ""
		}
		return strings.Join(elements, " ") + " "
	}
	switch in.kind {
	case getText:
		out.text, err = c.Get(ctx, text).Result()
		err = absent(err)
	case setText:
		err = c.Set(ctx, text, in.value, 0).Err()
	case swapText:
		sent := false
		err = c.Watch(ctx, func(tx *redis.Tx) error {
			seen, err := tx.Get(ctx, text).Result()
			if absent(err) != nil {
				return err
			}
			out.text, sent = seen, true
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, text, in.value, 0).Err() })
			return err
		}, text)
		out.swapped = err == nil
		if err == redis.TxFailedErr {
			err = nil
		} else if err != nil && !sent {
			err = &net.OpError{Op: "dial", Err: err} // nothing was asked to change
		}
	case exchangeText:
		var got *redis.StringCmd
		_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			got = p.Get(ctx, text)
			return p.Set(ctx, text, in.value, 0).Err()
		})
		err = absent(err)
		out.text = got.Val()
	case increment:
		out.number, err = c.Incr(ctx, counter).Result()
	case getCounter:
		out.number, err = c.Get(ctx, counter).Int64()
		err = absent(err)
	case push:
		out.length, err = c.RPush(ctx, list, in.value).Result()
	case pop:
		if len(in.value)%2 == 0 {
			out.text, err = c.LPop(ctx, list).Result()
		} else {
			var both []string
			both, err = c.Do(ctx, "BLPOP", list, "0.05").StringSlice()
			if err == nil {
				out.text = both[1]
			}
		}
		err = absent(err)
	case readList:
		var elements []string
		elements, err = c.LRange(ctx, list, 0, -1).Result()
		out.list = joined(elements)
	case changeAll:
		var incr, pushed *redis.IntCmd
		_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			incr, pushed = p.Incr(ctx, counter), p.RPush(ctx, list, in.value)
			return p.Set(ctx, text, in.value, 0).Err()
		})
		out.number, out.length = incr.Val(), pushed.Val()
	case readAll:
		var gotText, gotCounter *redis.StringCmd
		var gotList *redis.StringSliceCmd
		_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			gotText, gotCounter, gotList = p.Get(ctx, text), p.Get(ctx, counter), p.LRange(ctx, list, 0, -1)
			return nil
		})
		err = absent(err)
		out.text, out.list = gotText.Val(), joined(gotList.Val())
		out.number, _ = strconv.ParseInt(gotCounter.Val(), 10, 64)
	case changeScript:
		var both []int64
		both, err = c.Eval(ctx, changeScriptText, keys, in.value).Int64Slice()
		if err == nil {
			out.number, out.length = both[0], both[1]
		}
	case readScript:
		var parts []interface{}
		parts, err = c.EvalRO(ctx, readScriptText, keys).Slice()
		if err == nil {
			var elements []string
			for _, element := range parts[2].([]interface{}) {
				elements = append(elements, element.(string))
			}
			out.text, out.number, out.list = parts[0].(string), parts[1].(int64), joined(elements)
		}
	case moveScript:
		out.text, err = c.Eval(ctx, moveScriptText, keys).Text()
		err = absent(err)
	}
	var refused redis.Error
	if err != nil && errors.As(err, &refused) {
		fail("%s: %v", names[in.kind], err)
	}
	out.known = err == nil
	return out, err
}

type history struct {
	mutex      sync.Mutex
	operations []porcupine.Operation
}

// work performs operations until `end` is closed, and notes them.
func (h *history) work(s *server, id int, random *rand.Rand, begin time.Time, end <-chan struct{}) {
	c := s.client()
	defer c.Close()
	for count := 0; ; count++ {
		select {
		case <-end:
			return
		default:
		}
		in := input{family: random.Intn(families), kind: kind(random.Intn(int(kinds))), value: fmt.Sprintf("%d.%d", id, count)}
		if random.Intn(3) == 0 { // so that lists stay short
			in.kind = []kind{pop, pop, moveScript}[random.Intn(3)]
		}
		operation := porcupine.Operation{ClientId: id, Input: in, Call: time.Since(begin).Nanoseconds()}
		out, err := perform(c, in)
		operation.Output, operation.Return = out, time.Since(begin).Nanoseconds()
		if err != nil {
			operation.Return = math.MaxInt64
			time.Sleep(5 * time.Millisecond) // it is being started again
			if neverSent(err) {
				continue
			}
		}
		h.mutex.Lock()
		h.operations = append(h.operations, operation)
		h.mutex.Unlock()
	}
}

func main() {
	s := server{port: freePort()}
	flag.StringVar(&s.binary, "server", "", "the server's program")
	flag.StringVar(&s.dir, "dir", "", "an empty folder for its data")
	seconds := flag.Float64("seconds", 2, "between two kills")
	kills := flag.Int("kills", 2, "how often it is killed")
	seed := flag.Int64("seed", time.Now().UnixNano(), "of the choices")
	flag.Parse()
	s.options = flag.Args()
	s.start()
	begin, end := time.Now(), make(chan struct{})
	var all history
	var working sync.WaitGroup
	for id := 0; id < clients; id++ {
		working.Add(1)
		go func(id int) {
			defer working.Done()
			all.work(&s, id, rand.New(rand.NewSource(*seed*clients+int64(id))), begin, end)
		}(id)
	}
	for round := 0; ; round++ {
		time.Sleep(time.Duration(*seconds * float64(time.Second)))
		if round == *kills {
			break
		}
		s.kill()
		s.start()
	}
	close(end)
	working.Wait()
	s.kill()

	open := 0
	for _, operation := range all.operations {
		if operation.Return == math.MaxInt64 {
			open++
		}
	}
	fmt.Printf("%d operations, %d without an answer, %d kills, seed %d\n", len(all.operations), open, *kills, *seed)
	result, information := porcupine.CheckOperationsVerbose(model, all.operations, checkTimeout)
	if result == porcupine.Ok {
		return
	}
	picture := filepath.Join(s.dir, "history.html")
	if err := porcupine.VisualizePath(model, information, picture); err != nil {
		picture = err.Error()
	}
	fail("%v: no order of these operations explains the answers; %s", result, picture)
}
