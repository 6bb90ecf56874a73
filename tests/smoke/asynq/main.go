// asynq against a server: asynq port. Tasks that wait, come back, are due later, unique, repeated, archived; queues that are inspected.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const patience = 60 * time.Second

func check(ok bool, what string, details ...any) {
	if !ok {
		fmt.Fprintln(os.Stderr, append([]any{"failed:", what}, details...)...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func waitFor(condition func() bool, what string) {
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		check(time.Now().Before(deadline), what)
	}
}

func main() {
	connection := asynq.RedisClientOpt{Addr: "127.0.0.1:" + os.Args[1]}
	client, inspector := asynq.NewClient(connection), asynq.NewInspector(connection)
	var ticks, tries atomic.Int64
	mux := asynq.NewServeMux()
	mux.HandleFunc("double", func(_ context.Context, task *asynq.Task) error {
		_, err := task.ResultWriter().Write(append(task.Payload(), task.Payload()...))
		return err
	})
	mux.HandleFunc("third", func(context.Context, *asynq.Task) error {
		if tries.Add(1) < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	mux.HandleFunc("fail", func(context.Context, *asynq.Task) error {
		return fmt.Errorf("on purpose: %w", asynq.SkipRetry)
	})
	mux.HandleFunc("sleep", func(ctx context.Context, _ *asynq.Task) error {
		<-ctx.Done()
		return ctx.Err()
	})
	mux.HandleFunc("tick", func(context.Context, *asynq.Task) error {
		ticks.Add(1)
		return nil
	})
	mux.HandleFunc("grouped", func(_ context.Context, task *asynq.Task) error {
		_, err := task.ResultWriter().Write(task.Payload())
		return err
	})
	server := asynq.NewServer(connection, asynq.Config{
		Concurrency: 4, LogLevel: asynq.ErrorLevel, Queues: map[string]int{"default": 1, "urgent": 5},
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 50 * time.Millisecond },
		DelayedTaskCheckInterval: 100 * time.Millisecond, GroupGracePeriod: time.Second, GroupMaxSize: 5,
		GroupAggregator: asynq.GroupAggregatorFunc(func(_ string, tasks []*asynq.Task) *asynq.Task {
			return asynq.NewTask("grouped", []byte(fmt.Sprint(len(tasks))), asynq.TaskID("together"), asynq.Retention(time.Hour))
		}),
	})
	check(server.Start(mux) == nil, "the server")

	kept := asynq.Retention(time.Hour)
	enqueue := func(name, payload string, options ...asynq.Option) *asynq.TaskInfo {
		return must(client.Enqueue(asynq.NewTask(name, []byte(payload)), append(options, kept)...))
	}
	finished := func(queue, id string, state asynq.TaskState) *asynq.TaskInfo {
		var info *asynq.TaskInfo
		waitFor(func() bool {
			info, _ = inspector.GetTaskInfo(queue, id)
			return info != nil && info.State == state
		}, "task "+id)
		return info
	}
	for n := 0; n < 100; n++ {
		enqueue("double", fmt.Sprint(n), asynq.TaskID(fmt.Sprint("double", n)), asynq.Queue("urgent"))
	}
	for n := 0; n < 100; n++ {
		info := finished("urgent", fmt.Sprint("double", n), asynq.TaskStateCompleted)
		check(string(info.Result) == fmt.Sprint(n, n) || string(info.Result) == fmt.Sprintf("%d%d", n, n), "a result", string(info.Result))
	}
	began := time.Now()
	finished("default", enqueue("double", "x", asynq.ProcessIn(time.Second)).ID, asynq.TaskStateCompleted)
	check(time.Since(began) >= 900*time.Millisecond, "a delay", time.Since(began))
	check(finished("default", enqueue("third", "").ID, asynq.TaskStateCompleted).Retried == 2, "two more tries")
	failed := finished("default", enqueue("fail", "").ID, asynq.TaskStateArchived)
	check(failed.LastErr == "on purpose: skip retry for the task", "an error", failed.LastErr)
	task := asynq.NewTask("double", []byte("once"), asynq.Unique(time.Hour), asynq.ProcessIn(time.Hour))
	must(client.Enqueue(task))
	_, err := client.Enqueue(task)
	check(errors.Is(err, asynq.ErrDuplicateTask), "a duplicate", err)
	long := enqueue("sleep", "", asynq.MaxRetry(0))
	finished("default", long.ID, asynq.TaskStateActive)
	check(inspector.CancelProcessing(long.ID) == nil, "cancelling") // is published
	finished("default", long.ID, asynq.TaskStateArchived)
	for n := 0; n < 5; n++ {
		enqueue("part", fmt.Sprint(n), asynq.Group("smoke"))
	}
	check(string(finished("default", "together", asynq.TaskStateCompleted).Result) == "5", "a group")

	scheduler := asynq.NewScheduler(connection, nil)
	must(scheduler.Register("@every 1s", asynq.NewTask("tick", nil)))
	check(scheduler.Start() == nil, "the scheduler")
	waitFor(func() bool { return ticks.Load() >= 2 }, "two ticks")
	scheduler.Shutdown()
	info := must(inspector.GetQueueInfo("urgent"))
	check(info.Completed == 100 && info.ProcessedTotal == 100, "the queue", info)
	check(must(inspector.DeleteAllCompletedTasks("urgent")) == 100, "deleting")
	server.Shutdown()
	check(client.Close() == nil && inspector.Close() == nil, "closing")
	fmt.Println("asynq: ok")
}
