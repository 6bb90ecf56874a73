// Redisson against a server: RedissonJobs port. Its objects are Lua scripts and channels: locks, maps that expire, queues, limits, jobs.
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScheduledExecutorService;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RSemaphore;
import org.redisson.api.RTopic;
import org.redisson.api.RTransaction;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.TransactionOptions;
import org.redisson.api.WorkerOptions;
import org.redisson.api.options.KeysScanOptions;
import org.redisson.config.Config;

public class RedissonJobs {
    static RedissonClient one;
    static RedissonClient two; // as another process would have

    static final class Sum implements Callable<Integer>, Serializable {
        final int upTo;

        Sum(int upTo) {
            this.upTo = upTo;
        }

        public Integer call() {
            return upTo * (upTo + 1) / 2;
        }
    }

    static void locks() throws Exception {
        int[] sum = {0};
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 4; ++n) {
            RLock lock = (n % 2 == 0 ? one : two).getLock("smoke:lock");
            threads.add(new Thread(() -> {
                for (int round = 0; round < 20; ++round) {
                    lock.lock(); // who waits is told by a message
                    int before = sum[0];
                    Thread.yield();
                    sum[0] = before + 1;
                    lock.unlock();
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        Check.equal(sum[0], 80);

        RLock held = one.getLock("smoke:held");
        held.lock(1, TimeUnit.SECONDS);
        Check.that(!two.getLock("smoke:held").tryLock(), "the lock of another");
        Check.that(two.getLock("smoke:held").tryLock(20, 5, TimeUnit.SECONDS), "a lock whose time is over");
        RReadWriteLock both = one.getReadWriteLock("smoke:rw");
        both.readLock().lock();
        Check.that(two.getReadWriteLock("smoke:rw").readLock().tryLock(), "two readers");
        Check.that(!two.getReadWriteLock("smoke:rw").writeLock().tryLock(), "a writer beside readers");
        RLock fair = one.getFairLock("smoke:fair");
        fair.lock();
        fair.unlock();
        RSemaphore semaphore = one.getSemaphore("smoke:semaphore");
        semaphore.trySetPermits(2);
        Check.that(semaphore.tryAcquire() && semaphore.tryAcquire() && !semaphore.tryAcquire(), "two permits");
        RCountDownLatch latch = one.getCountDownLatch("smoke:latch");
        latch.trySetCount(1);
        Thread opener = new Thread(() -> two.getCountDownLatch("smoke:latch").countDown());
        opener.start();
        Check.that(latch.await(20, TimeUnit.SECONDS), "the latch");
        opener.join();
    }

    static void collections() throws Exception {
        RMapCache<String, Integer> map = one.getMapCache("smoke:map");
        map.put("stays", 1);
        map.put("goes", 2, 300, TimeUnit.MILLISECONDS);
        Check.equal(two.<String, Integer>getMapCache("smoke:map").get("goes"), 2);
        Check.that(map.replace("stays", 1, 6), "compare and replace");
        Check.waitFor("an entry's expiry", () -> !map.containsKey("goes"));
        Check.equal(map.putIfAbsent("stays", 9), 6);
        RScoredSortedSet<String> ranked = one.getScoredSortedSet("smoke:ranked");
        for (int n = 0; n < 100; ++n) ranked.add(n, "m" + n);
        Check.equal(ranked.rank("m42"), 42);
        Check.equal(ranked.pollFirst(), "m0");
        RAtomicLong counter = one.getAtomicLong("smoke:counter");
        Check.that(counter.compareAndSet(0, 41) && counter.incrementAndGet() == 42, "compare and set");
        RBatch batch = one.createBatch();
        for (int n = 0; n < 500; ++n) batch.getBucket("smoke:b" + n).setAsync(n);
        Check.equal(batch.execute().getResponses().size(), 500);
        int keys = 0;
        for (String key : one.getKeys().getKeys(KeysScanOptions.defaults().pattern("smoke:b*").chunkSize(50))) ++keys;
        Check.equal(keys, 500);
        RTransaction transaction = one.createTransaction(TransactionOptions.defaults());
        transaction.<String, Integer>getMap("smoke:tx").put("a", 1);
        transaction.<Integer>getBucket("smoke:tb").set(2);
        transaction.commit();
        Check.equal(two.getMap("smoke:tx").get("a"), 1);
    }

    static void messages() throws Exception {
        ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
        RTopic topic = two.getTopic("smoke:topic");
        topic.addListener(String.class, (channel, message) -> heard.add(message));
        Check.waitFor("a message", () -> one.getTopic("smoke:topic").publish("hello") == 1);
        Check.waitFor("the message", () -> heard.contains("hello"));
        topic.removeAllListeners();

        RBlockingQueue<String> queue = one.getBlockingQueue("smoke:queue");
        RDelayedQueue<String> delayed = one.getDelayedQueue(queue);
        long began = System.nanoTime();
        delayed.offer("late", 500, TimeUnit.MILLISECONDS);
        Check.equal(two.<String>getBlockingQueue("smoke:queue").poll(20, TimeUnit.SECONDS), "late");
        Check.that(System.nanoTime() - began >= 450_000_000L, "too early");
        delayed.destroy();

        RRateLimiter limiter = one.getRateLimiter("smoke:limit");
        limiter.trySetRate(RateType.OVERALL, 3, Duration.ofMinutes(1));
        int taken = 0;
        for (int n = 0; n < 10; ++n) taken += (n % 2 == 0 ? one : two).getRateLimiter("smoke:limit").tryAcquire() ? 1 : 0;
        Check.equal(taken, 3);
    }

    static void jobs() throws Exception {
        two.getExecutorService("smoke:jobs").registerWorkers(WorkerOptions.defaults().workers(2));
        RScheduledExecutorService service = one.getExecutorService("smoke:jobs");
        Check.equal(service.submit(new Sum(100)).get(30, TimeUnit.SECONDS), 5050);
        long began = System.nanoTime();
        Check.equal(service.schedule(new Sum(10), 500, TimeUnit.MILLISECONDS).get(30, TimeUnit.SECONDS), 55);
        Check.that(System.nanoTime() - began >= 450_000_000L, "too early");
        service.shutdown();
    }

    public static void main(String[] arguments) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0]).setConnectionMinimumIdleSize(2).setSubscriptionConnectionMinimumIdleSize(1);
        one = Redisson.create(config);
        two = Redisson.create(new Config(config));
        locks();
        collections();
        messages();
        jobs();
        two.shutdown();
        one.shutdown();
        System.out.println("redisson: ok");
    }
}
