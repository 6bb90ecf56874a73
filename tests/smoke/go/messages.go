// What clients tell each other: pub/sub, blocking pops, streams with groups, client side caches; TLS.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const patience = 20 * time.Second

func waitFor(condition func() bool, what string) {
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		check(time.Now().Before(deadline), what)
	}
}

func nextMessage(listener *redis.PubSub) *redis.Message {
	select {
	case message := <-listener.Channel():
		return message
	case <-time.After(patience):
		check(false, "no message came")
		return nil
	}
}

func publishing(r *redis.Client) {
	listener := r.Subscribe(ctx, "smoke:news")
	defer listener.Close()
	check(listener.PSubscribe(ctx, "smoke:w*") == nil, "PSUBSCRIBE")
	waitFor(func() bool { return must(r.PubSubNumPat(ctx).Result()) == 1 }, "the subscriptions")
	check(must(r.Publish(ctx, "smoke:news", "one").Result()) == 1, "PUBLISH")
	check(must(r.Publish(ctx, "smoke:weather", []byte{0, 255}).Result()) == 1, "PUBLISH to a pattern")
	check(must(r.Publish(ctx, "smoke:other", "nobody").Result()) == 0, "PUBLISH to nobody")
	first, second := nextMessage(listener), nextMessage(listener)
	check(first.Channel == "smoke:news" && first.Payload == "one", "a message", first)
	check(second.Pattern == "smoke:w*" && second.Payload == "\x00\xff", "a pattern's message", second)
	check(listener.Unsubscribe(ctx, "smoke:news") == nil, "UNSUBSCRIBE")
	waitFor(func() bool { return must(r.Publish(ctx, "smoke:news", "two").Result()) == 0 }, "UNSUBSCRIBE")
	sharded := r.SSubscribe(ctx, "smoke:shard")
	defer sharded.Close()
	must(sharded.Receive(ctx))
	check(must(r.SPublish(ctx, "smoke:shard", "three").Result()) == 1, "SPUBLISH")
	check(nextMessage(sharded).Payload == "three", "a sharded message")
}

func isBlocked(r *redis.Client) func() bool {
	return func() bool { return strings.Contains(r.Info(ctx, "clients").Val(), "blocked_clients:1") }
}

func blocking(r *redis.Client) {
	check(r.BLPop(ctx, time.Second, "smoke:absent").Err() == redis.Nil, "BLPOP of nothing")
	popped := make(chan []string)
	go func() { popped <- must(r.BLPop(ctx, patience, "smoke:none", "smoke:queue").Result()) }()
	waitFor(isBlocked(r), "a blocked client")
	must(r.RPush(ctx, "smoke:queue", "job").Result())
	check(reflect.DeepEqual(<-popped, []string{"smoke:queue", "job"}), "BLPOP")
	ranked := make(chan *redis.ZWithKey)
	go func() { ranked <- must(r.BZPopMin(ctx, patience, "smoke:ranked").Result()) }()
	waitFor(isBlocked(r), "a client blocked for a sorted set")
	must(r.ZAdd(ctx, "smoke:ranked", redis.Z{Score: 2, Member: "b"}, redis.Z{Score: 1.5, Member: "a"}).Result())
	found := <-ranked
	check(found.Key == "smoke:ranked" && found.Member == "a" && found.Score == 1.5, "BZPOPMIN", found)
	must(r.RPush(ctx, "smoke:from", "a", "b").Result())
	check(must(r.BLMove(ctx, "smoke:from", "smoke:to", "LEFT", "RIGHT", patience).Result()) == "a", "BLMOVE")
}

func streams(r *redis.Client) {
	must(r.Del(ctx, "smoke:log").Result())
	ids := []string{}
	for n := 0; n < 20; n++ {
		ids = append(ids, must(r.XAdd(ctx, &redis.XAddArgs{Stream: "smoke:log", Values: []any{"n", n}}).Result()))
	}
	must(r.XGroupCreate(ctx, "smoke:log", "workers", "0").Result())
	isError(r.XGroupCreate(ctx, "smoke:log", "workers", "0").Err(), "BUSYGROUP")
	read := func(consumer string, count int64, block time.Duration) []string {
		found := must(r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: consumer, Count: count,
			Streams: []string{"smoke:log", ">"}, Block: block}).Result())
		got := []string{}
		for _, message := range found[0].Messages {
			got = append(got, message.ID)
		}
		return got
	}
	check(reflect.DeepEqual(read("ann", 12, -1), ids[:12]), "XREADGROUP of one")
	check(reflect.DeepEqual(read("bob", 0, -1), ids[12:]), "XREADGROUP of another")
	check(must(r.XAck(ctx, "smoke:log", "workers", ids[:10]...).Result()) == 10, "XACK")
	pending := must(r.XPending(ctx, "smoke:log", "workers").Result())
	check(pending.Count == 10 && reflect.DeepEqual(pending.Consumers, map[string]int64{"ann": 2, "bob": 8}), "XPENDING", pending)
	claimed, _, err := r.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: "smoke:log", Group: "workers", Consumer: "bob",
		Start: "0-0", Count: 2}).Result()
	check(err == nil && len(claimed) == 2 && claimed[1].ID == ids[11], "XAUTOCLAIM", claimed, err)
	groups := must(r.XInfoGroups(ctx, "smoke:log").Result())
	check(len(groups) == 1 && groups[0].Pending == 10 && groups[0].EntriesRead == 20 && groups[0].Lag == 0, "XINFO GROUPS", groups)
	full := must(r.XInfoStreamFull(ctx, "smoke:log", 0).Result())
	check(full.Length == 20 && len(full.Groups[0].Consumers) == 2, "XINFO STREAM FULL", full)
	late := make(chan []string)
	go func() { late <- read("ann", 0, patience) }()
	waitFor(isBlocked(r), "a blocked reader")
	added := must(r.XAdd(ctx, &redis.XAddArgs{Stream: "smoke:log", Values: []any{"late", 1}}).Result())
	check(reflect.DeepEqual(<-late, []string{added}), "a blocked XREADGROUP")
	check(must(r.XTrimMaxLen(ctx, "smoke:log", 5).Result()) == 16, "XTRIM")
}

func iterators(r *redis.Client) {
	for n := 0; n < 700; n++ {
		must(r.HSet(ctx, "smoke:hash", fmt.Sprint("f", n), n).Result())
		must(r.SAdd(ctx, "smoke:set", n).Result())
	}
	fields := map[string]bool{}
	each := r.HScan(ctx, "smoke:hash", 0, "f1*", 30).Iterator()
	for each.Next(ctx) {
		fields[each.Val()] = true
	}
	check(each.Err() == nil && len(fields) >= 111, "HSCAN", each.Err(), len(fields))
	members := map[string]bool{}
	for each = r.SScan(ctx, "smoke:set", 0, "", 30).Iterator(); each.Next(ctx); {
		members[each.Val()] = true
	}
	check(each.Err() == nil && len(members) == 700, "SSCAN", each.Err(), len(members))
}

// tracking hears of changes on the connection of a subscriber. RESP2: the library passes over pushes that it does not know.
func tracking(options redis.Options, other *redis.Client) {
	numbers := make(chan int64, 1)
	hearing := options
	hearing.OnConnect = func(_ context.Context, conn *redis.Conn) error {
		numbers <- must(conn.ClientID(ctx).Result())
		return nil
	}
	hears := redis.NewClient(&hearing)
	defer hears.Close()
	listener := hears.Subscribe(ctx, "__redis__:invalidate")
	defer listener.Close()
	must(listener.Receive(ctx))
	conn := other.Conn()
	defer conn.Close()
	check(conn.Process(ctx, redis.NewCmd(ctx, "CLIENT", "TRACKING", "ON", "REDIRECT", <-numbers, "NOLOOP")) == nil, "TRACKING")
	must(other.Set(ctx, "smoke:cached", 1, 0).Result())
	must(conn.Get(ctx, "smoke:cached").Result())
	must(conn.Set(ctx, "smoke:cached", 2, 0).Result()) // its own, of which NOLOOP says nothing
	must(conn.Get(ctx, "smoke:cached").Result())
	must(other.Set(ctx, "smoke:cached", 3, 0).Result())
	message := nextMessage(listener)
	check(reflect.DeepEqual(message.PayloadSlice, []string{"smoke:cached"}), "an invalidation", message)
	check(conn.Process(ctx, redis.NewCmd(ctx, "CLIENT", "TRACKING", "OFF")) == nil, "TRACKING OFF")
}

func secured(protocol int, tlsPort, caFile string) {
	trusted := x509.NewCertPool()
	check(trusted.AppendCertsFromPEM(must(os.ReadFile(caFile))), "the CA")
	connect := func(password string) *redis.Client {
		return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + tlsPort, Protocol: protocol, Username: "smoke",
			Password: password, TLSConfig: &tls.Config{RootCAs: trusted}})
	}
	r := connect("secret")
	defer r.Close()
	large := bytes.Repeat([]byte("x"), 200_000)
	must(r.Set(ctx, "smoke:secret", large, 0).Result())
	check(bytes.Equal(must(r.Get(ctx, "smoke:secret").Bytes()), large), "GET over TLS")
	check(must(r.ACLDryRun(ctx, "smoke", "get", "smoke:x").Result()) == "OK", "ACL DRYRUN")
	isError(r.Get(ctx, "another's").Err(), "NOPERM")
	refused := connect("wrong")
	defer refused.Close()
	isError(refused.Ping(ctx).Err(), "WRONGPASS")
}
