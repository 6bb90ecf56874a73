// Lettuce against a server: LettuceSmoke port protocol, port of TLS, certificate of its CA.
import io.lettuce.core.Consumer;
import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.KeyValue;
import io.lettuce.core.Limit;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.SslOptions;
import io.lettuce.core.StreamMessage;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.XAutoClaimArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

public class LettuceSmoke {
    static RedisClient client;
    static StatefulRedisConnection<String, String> connection;
    static RedisCommands<String, String> r;
    static RedisCommands<String, String> other;

    static void strings() {
        Check.equal(r.set("greeting", "hello"), "OK");
        Check.equal(r.set("greeting", "again", SetArgs.Builder.nx()), null);
        Check.equal(r.setGet("greeting", "bye"), "hello");
        Check.equal(r.incrbyfloat("real", 1.5), 1.5);
        r.mset(Map.of("a", "1", "b", "2"));
        Check.equal(r.mget("a", "absent"), List.of(KeyValue.just("a", "1"), KeyValue.empty("absent")));
        r.hset("h", Map.of("x", "1", "y", "2"));
        Check.equal(r.hgetall("h"), Map.of("x", "1", "y", "2"));
        r.zadd("z", 1.0, "one", 2.5, "two");
        Check.equal(r.zrangeWithScores("z", 0, -1), List.of(ScoredValue.just(1.0, "one"), ScoredValue.just(2.5, "two")));
        Check.equal(r.zrangebyscore("z", io.lettuce.core.Range.create(2, 3), Limit.from(1)), List.of("two"));
        Check.fails("not an integer", () -> r.incr("greeting"));
        Check.fails("WRONGTYPE", () -> r.lpush("h", "x"));
    }

    // What is written while flushing is held back is one pipeline.
    static void pipelines() {
        RedisAsyncCommands<String, String> async = connection.async();
        connection.setAutoFlushCommands(false);
        List<RedisFuture<String>> answers = new ArrayList<>();
        for (int n = 0; n < 1000; ++n) {
            async.set("p:" + n, "" + n);
            answers.add(async.get("p:" + n));
        }
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        Check.that(LettuceFutures.awaitAll(30, TimeUnit.SECONDS, answers.toArray(new RedisFuture<?>[0])), "the pipeline");
        for (int n = 0; n < 1000; ++n) Check.equal(answers.get(n).toCompletableFuture().join(), "" + n);
    }

    static void transactions() {
        r.set("t", "1");
        r.watch("t");
        other.set("t", "100"); // a conflict
        r.multi();
        r.set("t", "2");
        Check.that(r.exec().wasDiscarded(), "WATCH with a conflict");
        r.watch("t");
        r.multi();
        r.incr("t");
        TransactionResult won = r.exec();
        Check.that(!won.wasDiscarded(), "WATCH without one");
        Check.equal(won.<Long>get(0), 101L);
    }

    static void scripts() {
        Check.equal(r.eval("return {KEYS[1], ARGV[1], 3}", ScriptOutputType.MULTI, new String[] {"k"}, "v"), List.of("k", "v", 3L));
        String sha = r.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
        Check.equal(r.evalsha(sha, ScriptOutputType.INTEGER, new String[] {"n"}, "5"), 5L);
        Check.fails("NOSCRIPT", () -> r.evalsha("x".repeat(40), ScriptOutputType.STATUS));
        r.functionLoad("#!lua name=smoke\nredis.register_function('twice', function(k, a) return 2 * a[1] end)", true);
        Check.equal(r.fcall("twice", ScriptOutputType.INTEGER, new String[] {}, "21"), 42L);
        byte[] dump = r.functionDump();
        r.functionFlush(io.lettuce.core.FlushMode.SYNC);
        r.functionRestore(dump);
        Check.equal(r.functionList().size(), 1);
    }

    static void publishing() throws Exception {
        ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
        try (StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub()) {
            listener.addListener(new RedisPubSubAdapter<>() {
                public void message(String channel, String message) {
                    heard.add(channel + " " + message);
                }

                public void message(String pattern, String channel, String message) {
                    heard.add(pattern + " " + channel + " " + message);
                }
            });
            listener.sync().subscribe("smoke:news");
            listener.sync().psubscribe("smoke:w*");
            Check.equal(r.publish("smoke:news", "one"), 1L);
            Check.equal(r.publish("smoke:weather", "two"), 1L);
            Check.waitFor("both messages", () -> heard.size() == 2);
            Check.equal(List.copyOf(heard), List.of("smoke:news one", "smoke:w* smoke:weather two"));
            listener.sync().unsubscribe("smoke:news");
            Check.equal(r.publish("smoke:news", "nobody"), 0L);
        }
    }

    static void blocking() throws Exception {
        try (StatefulRedisConnection<String, String> waiting = client.connect()) {
            RedisFuture<KeyValue<String, String>> popped = waiting.async().blpop(30, "smoke:none", "smoke:queue");
            Check.waitFor("a blocked client", () -> r.info("clients").contains("blocked_clients:1"));
            r.rpush("smoke:queue", "job");
            Check.equal(popped.get(30, TimeUnit.SECONDS), KeyValue.just("smoke:queue", "job"));
            r.zadd("smoke:ranked", 1.5, "a");
            Check.equal(waiting.sync().bzpopmin(30, "smoke:ranked").getValue(), ScoredValue.just(1.5, "a"));
        }
    }

    @SuppressWarnings("unchecked") // arrays of generic types
    static void streams() {
        List<String> ids = new ArrayList<>();
        for (int n = 0; n < 20; ++n) ids.add(r.xadd("smoke:log", Map.of("n", "" + n)));
        r.xgroupCreate(XReadArgs.StreamOffset.from("smoke:log", "0"), "workers");
        XReadArgs.StreamOffset<String> fresh = XReadArgs.StreamOffset.lastConsumed("smoke:log");
        List<StreamMessage<String, String>> got = r.xreadgroup(Consumer.from("workers", "ann"), XReadArgs.Builder.count(12), fresh);
        Check.equal(got.stream().map(StreamMessage::getId).toList(), ids.subList(0, 12));
        Check.equal(r.xreadgroup(Consumer.from("workers", "bob"), XReadArgs.Builder.block(30_000), fresh).size(), 8);
        Check.equal(r.xack("smoke:log", "workers", ids.subList(0, 10).toArray(new String[0])), 10L);
        Check.equal(r.xpending("smoke:log", "workers").getCount(), 10L);
        Check.equal(r.xautoclaim("smoke:log", XAutoClaimArgs.Builder.xautoclaim(Consumer.from("workers", "bob"), Duration.ZERO, "0-0").count(2))
            .getMessages().stream().map(StreamMessage::getId).toList(), ids.subList(10, 12));
    }

    static void iterators() {
        Map<String, String> fields = new HashMap<>();
        for (int n = 0; n < 700; ++n) fields.put("f" + n, "" + n);
        r.hset("smoke:hash", fields);
        Map<String, String> found = new HashMap<>();
        ScanIterator.hscan(r, "smoke:hash", ScanArgs.Builder.limit(50)).forEachRemaining(pair -> found.put(pair.getKey(), pair.getValue()));
        Check.equal(found, fields);
        int keys = 0;
        for (KeyScanCursor<String> cursor = r.scan(ScanArgs.Builder.matches("p:*").limit(100));; cursor = r.scan(cursor, ScanArgs.Builder.matches("p:*").limit(100))) {
            keys += cursor.getKeys().size();
            if (cursor.isFinished()) break;
        }
        Check.equal(keys, 1000);
    }

    static void clientSideCache() throws Exception {
        Map<String, String> local = new ConcurrentHashMap<>();
        try (StatefulRedisConnection<String, String> tracking = client.connect()) {
            other.set("smoke:cached", "1");
            CacheFrontend<String, String> cache = ClientSideCaching.enable(CacheAccessor.forMap(local), tracking, TrackingArgs.Builder.enabled());
            Check.equal(cache.get("smoke:cached"), "1");
            Check.equal(local, Map.of("smoke:cached", "1"));
            other.set("smoke:cached", "2");
            Check.waitFor("an invalidation", local::isEmpty);
            Check.equal(cache.get("smoke:cached"), "2");
        }
    }

    static void secured(int tlsPort, String caFile) {
        SslOptions trust = SslOptions.builder().jdkSslProvider().trustManager(new File(caFile)).build();
        client.setOptions(client.getOptions().mutate().sslOptions(trust).build());
        RedisURI.Builder uri = RedisURI.builder().withHost("127.0.0.1").withPort(tlsPort).withSsl(true).withTimeout(Duration.ofSeconds(30));
        try (StatefulRedisConnection<String, String> secure = client.connect(uri.withAuthentication("smoke", "secret".toCharArray()).build())) {
            secure.sync().set("smoke:secret", "x".repeat(200_000));
            Check.equal(secure.sync().get("smoke:secret").length(), 200_000);
            Check.equal(secure.sync().aclWhoami(), "smoke");
            Check.fails("NOPERM", () -> secure.sync().get("another's"));
        }
        Check.fails("WRONGPASS", () -> client.connect(uri.withAuthentication("smoke", "wrong".toCharArray()).build()));
    }

    public static void main(String[] arguments) throws Exception {
        boolean resp3 = arguments[1].equals("3");
        client = RedisClient.create(RedisURI.builder().withHost("127.0.0.1").withPort(Integer.parseInt(arguments[0])).withTimeout(Duration.ofSeconds(30)).build());
        client.setOptions(ClientOptions.builder().autoReconnect(false)
            .protocolVersion(resp3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2).build());
        connection = client.connect();
        r = connection.sync();
        other = client.connect().sync();
        strings();
        pipelines();
        transactions();
        scripts();
        publishing();
        blocking();
        streams();
        iterators();
        if (resp3) clientSideCache();
        secured(Integer.parseInt(arguments[2]), arguments[3]);
        client.shutdown(Duration.ZERO, Duration.ofSeconds(5));
        System.out.println("Lettuce, RESP" + arguments[1] + ": ok");
    }
}
