// go-redis against a server: smoke port protocol, port of TLS, certificate of its CA
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// check ends the program unless everything is as expected.
func check(ok bool, what string, details ...any) {
	if !ok {
		fmt.Fprintln(os.Stderr, append([]any{"failed:", what}, details...)...)
		os.Exit(1)
	}
}

// must returns the value of an answer that may not be an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func isError(err error, text string) {
	check(err != nil && strings.Contains(err.Error(), text), "an error with "+text, err)
}

func stringCommands(r *redis.Client) {
	check(must(r.Ping(ctx).Result()) == "PONG", "PING")
	check(must(r.Set(ctx, "greeting", "hello", 0).Result()) == "OK", "SET")
	check(must(r.Get(ctx, "greeting").Result()) == "hello", "GET")
	check(r.Get(ctx, "absent").Err() == redis.Nil, "GET of nothing")
	check(!must(r.SetNX(ctx, "greeting", "again", 0).Result()), "SET NX")
	check(must(r.GetSet(ctx, "greeting", "bye").Result()) == "hello", "GETSET")
	check(must(r.Incr(ctx, "count").Result()) == 1, "INCR")
	check(must(r.IncrBy(ctx, "count", 5).Result()) == 6, "INCRBY")
	check(must(r.IncrByFloat(ctx, "real", 1.5).Result()) == 1.5, "INCRBYFLOAT")
	must(r.MSet(ctx, "a", "1", "b", "2").Result())
	got := must(r.MGet(ctx, "a", "absent", "b").Result())
	check(reflect.DeepEqual(got, []any{"1", nil, "2"}), "MGET", got)
	check(must(r.Append(ctx, "a", "23").Result()) == 3, "APPEND")
	check(must(r.GetRange(ctx, "a", 1, -1).Result()) == "23", "GETRANGE")
	check(must(r.Exists(ctx, "a", "b", "absent").Result()) == 2, "EXISTS")
	check(must(r.Del(ctx, "a", "b", "absent").Result()) == 2, "DEL")
}

func expiry(r *redis.Client) {
	must(r.Set(ctx, "short", "x", 100*time.Millisecond).Result())
	left := must(r.PTTL(ctx, "short").Result())
	check(left > 0 && left <= 100*time.Millisecond, "PTTL", left)
	must(r.Set(ctx, "long", "x", 1000*time.Second).Result())
	check(must(r.TTL(ctx, "long").Result()) > 995*time.Second, "TTL")
	check(must(r.Persist(ctx, "long").Result()), "PERSIST")
	check(must(r.TTL(ctx, "long").Result()) == -1, "TTL without an expiry")
	for deadline := time.Now().Add(5 * time.Second); must(r.Exists(ctx, "short").Result()) == 1; {
		check(time.Now().Before(deadline), "expiry in time")
		time.Sleep(20 * time.Millisecond)
	}
}

func pipelines(r *redis.Client) {
	commands := must(r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := 0; n < 1000; n++ {
			pipe.Set(ctx, "p:"+strconv.Itoa(n), n, 0)
			pipe.Get(ctx, "p:"+strconv.Itoa(n))
		}
		return nil
	}))
	for n := 0; n < 1000; n++ {
		check(commands[2*n+1].(*redis.StringCmd).Val() == strconv.Itoa(n), "a pipelined GET", n)
	}
	commands, err := r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "text", "abc", 0)
		pipe.Incr(ctx, "text")
		pipe.Get(ctx, "text")
		return nil
	})
	isError(err, "not an integer")
	check(commands[2].(*redis.StringCmd).Val() == "abc", "GET behind an error")
}

func transactions(r *redis.Client) {
	commands := must(r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "t", 1, 0)
		pipe.Incr(ctx, "t")
		return nil
	}))
	check(commands[1].(*redis.IntCmd).Val() == 2, "EXEC")
	attempts := 0
	addOne := func(tx *redis.Tx) error {
		before := must(tx.Get(ctx, "t").Int())
		if attempts++; attempts == 1 {
			must(r.Set(ctx, "t", 100, 0).Result()) // a conflict, by another connection
		}
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "t", before+1, 0)
			return nil
		})
		return err
	}
	check(errors.Is(r.Watch(ctx, addOne, "t"), redis.TxFailedErr), "WATCH with a conflict")
	check(r.Watch(ctx, addOne, "t") == nil, "WATCH without one")
	check(must(r.Get(ctx, "t").Int()) == 101, "the value after both")
}

func scanning(r *redis.Client) {
	must(r.FlushDB(ctx).Result())
	must(r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := 0; n < 600; n++ {
			pipe.Set(ctx, fmt.Sprintf("%s:%d", []string{"user", "item"}[n%2], n), n, 0)
		}
		return nil
	}))
	check(must(r.DBSize(ctx).Result()) == 600, "DBSIZE")
	found := map[string]bool{}
	each := r.Scan(ctx, 0, "user:*", 50).Iterator()
	for each.Next(ctx) {
		found[each.Val()] = true
	}
	check(each.Err() == nil && len(found) == 300, "SCAN", each.Err(), len(found))
	check(len(must(r.Keys(ctx, "item:*").Result())) == 300, "KEYS")
}

func values(r *redis.Client) {
	everything := make([]byte, 256)
	for n := range everything {
		everything[n] = byte(n)
	}
	must(r.Set(ctx, string(everything), everything, 0).Result())
	check(bytes.Equal(must(r.Get(ctx, string(everything)).Bytes()), everything), "a binary value")
	large := make([]byte, 5<<20)
	must(rand.Read(large))
	must(r.Set(ctx, "large", large, 0).Result())
	check(bytes.Equal(must(r.Get(ctx, "large").Bytes()), large), "a large value")
}

func errorReplies(r *redis.Client) {
	isError(r.Incr(ctx, "large").Err(), "not an integer")
	isError(r.Do(ctx, "NOSUCH", "x").Err(), "unknown command")
	isError(r.Do(ctx, "GET").Err(), "wrong number of arguments")
	isError(r.Do(ctx, "SET", "k", "v", "EX", "0").Err(), "invalid expire time")
	isError(r.Rename(ctx, "absent", "x").Err(), "no such key")
}

func scripts(r *redis.Client) {
	script := redis.NewScript(`return {redis.call("INCRBY", KEYS[1], ARGV[1]), ARGV[1]}`)
	must(r.Del(ctx, "n").Result())
	for n := 1; n <= 2; n++ {
		found := must(script.Run(ctx, r, []string{"n"}, 5).Slice())
		check(found[0] == int64(5*n) && found[1] == "5", "a script", found)
	}
	isError(script.RunRO(ctx, r, []string{"n"}, 5).Err(), "not allowed from read-only scripts")
	isError(r.EvalSha(ctx, strings.Repeat("x", 40), nil).Err(), "NOSCRIPT")
	isError(r.Eval(ctx, `error("mine")`, nil).Err(), "user_script:1: mine")
	library := "#!lua name=smoke\nredis.register_function('twice', function(keys, args) return 2 * args[1] end)"
	check(must(r.FunctionLoadReplace(ctx, library).Result()) == "smoke", "FUNCTION LOAD")
	check(must(r.FCall(ctx, "twice", nil, 21).Int()) == 42, "FCALL")
	check(len(must(r.FunctionList(ctx, redis.FunctionListQuery{}).Result())) == 1, "FUNCTION LIST")
}

func server(r *redis.Client) {
	conn := r.Conn()
	defer conn.Close()
	must(conn.ClientSetName(ctx, "smoke").Result())
	check(must(conn.ClientGetName(ctx).Result()) == "smoke", "CLIENT GETNAME")
	list := must(conn.ClientList(ctx).Result())
	check(strings.Count(list, " name=smoke ") == 1, "CLIENT LIST", list)
	id := must(conn.ClientID(ctx).Result())
	check(must(conn.ClientInfo(ctx).Result()).ID == id, "CLIENT INFO")
	info := must(r.InfoMap(ctx).Result())
	check(strings.HasPrefix(info["Server"]["redis_version"], "7."), "INFO server", info["Server"])
	check(info["Replication"]["role"] == "master", "INFO replication", info["Replication"])
	keys := fmt.Sprintf("keys=%d,", must(r.DBSize(ctx).Result()))
	check(strings.Contains(info["Keyspace"]["db0"], keys), "INFO keyspace", info["Keyspace"])
	check(len(must(r.ConfigGet(ctx, "appendfsync").Result())) == 1, "CONFIG GET")
	commands := must(r.Command(ctx).Result())
	check(commands["get"] != nil && commands["get"].ReadOnly, "COMMAND")
}

func main() {
	protocol := must(strconv.Atoi(os.Args[2]))
	options := redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol}
	r := redis.NewClient(&options)
	stringCommands(r)
	expiry(r)
	pipelines(r)
	transactions(r)
	scanning(r)
	values(r)
	errorReplies(r)
	scripts(r)
	server(r)
	publishing(r)
	blocking(r)
	streams(r)
	iterators(r)
	if protocol == 2 {
		tracking(options, r)
	}
	secured(protocol, os.Args[3], os.Args[4])
	options.DB = 3
	third := redis.NewClient(&options)
	must(third.Set(ctx, "k", "ü", 0).Result())
	check(must(third.Get(ctx, "k").Result()) == "ü", "GET in database 3")
	check(must(third.DBSize(ctx).Result()) == 1, "DBSIZE of database 3")
	check(third.Close() == nil && r.Close() == nil, "closing")
	fmt.Printf("go-redis, RESP%d: ok\n", protocol)
}
