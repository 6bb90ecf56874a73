// go-redis through Sentinel: adds one number after another to a set, and prints those that were
// acknowledged, until its input ends. Arguments: the name, the key, the sentinels' addresses.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    os.Args[1],
		SentinelAddrs: os.Args[3:],
		DialTimeout:   time.Second,
		ReadTimeout:   4 * time.Second,
		MaxRetries:    -1,
	})
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	for number := 1; !ended.Load(); number++ {
		if err := client.SAdd(context.Background(), os.Args[2], number).Err(); err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		fmt.Println(number)
		time.Sleep(time.Millisecond)
	}
}
