// Jedis against a server: JedisSmoke port protocol, port of TLS, certificate of its CA. (Its own cache wants a server of 7.4.)
import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XAddParams;
import redis.clients.jedis.params.XAutoClaimParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.StreamEntry;
import redis.clients.jedis.resps.Tuple;

public class JedisSmoke {
    static JedisPooled r;
    static DefaultJedisClientConfig config;
    static HostAndPort address;

    static DefaultJedisClientConfig.Builder options(RedisProtocol protocol) {
        return DefaultJedisClientConfig.builder().protocol(protocol).socketTimeoutMillis(30_000);
    }

    static void strings() {
        Check.equal(r.set("greeting", "hello"), "OK");
        Check.equal(r.get("greeting"), "hello");
        Check.equal(r.get("absent"), null);
        Check.equal(r.set("greeting", "again", SetParams.setParams().nx()), null);
        Check.equal(r.setGet("greeting", "bye"), "hello");
        Check.equal(r.incrBy("count", 6), 6L);
        Check.equal(r.incrByFloat("real", 1.5), 1.5);
        Check.equal(r.mget("count", "absent"), java.util.Arrays.asList("6", null));
        byte[] everything = new byte[256];
        for (int n = 0; n < 256; ++n) everything[n] = (byte) n;
        r.set(everything, everything);
        Check.that(java.util.Arrays.equals(r.get(everything), everything), "a binary value");
        r.hset("h", Map.of("a", "1", "b", "2"));
        Check.equal(r.hgetAll("h"), Map.of("a", "1", "b", "2"));
        r.zadd("z", Map.of("one", 1.0, "two", 2.5));
        Check.equal(r.zrangeWithScores("z", 0, -1), List.of(new Tuple("one", 1.0), new Tuple("two", 2.5)));
        Check.equal(r.zscore("z", "two"), 2.5);
        Check.fails("not an integer", () -> r.incr("greeting"));
        Check.fails("WRONGTYPE", () -> r.lpush("h", "x"));
    }

    static void pipelines() {
        try (AbstractPipeline pipe = r.pipelined()) {
            List<Response<String>> answers = new ArrayList<>();
            for (int n = 0; n < 1000; ++n) {
                pipe.set("p:" + n, "" + n);
                answers.add(pipe.get("p:" + n));
            }
            pipe.sync();
            for (int n = 0; n < 1000; ++n) Check.equal(answers.get(n).get(), "" + n);
        }
    }

    static void transactions() {
        try (Jedis one = new Jedis(address, config)) {
            one.set("t", "1");
            one.watch("t");
            r.set("t", "100"); // a conflict
            Transaction lost = one.multi();
            lost.set("t", "2");
            Check.equal(lost.exec(), null);
            one.watch("t");
            Transaction won = one.multi();
            Response<Long> answer = won.incr("t");
            Check.equal(won.exec(), List.of(101L));
            Check.equal(answer.get(), 101L);
        }
        try (AbstractTransaction both = r.multi()) {
            both.set("t", "abc");
            both.incr("t");
            both.get("t");
            List<Object> answers = both.exec();
            Check.that(answers.get(1) instanceof Exception, "the error inside");
            Check.equal(answers.get(2), "abc");
        }
    }

    static void scripts() {
        Check.equal(r.eval("return {KEYS[1], ARGV[1], 3, {4}}", List.of("k"), List.of("v")), List.of("k", "v", 3L, List.of(4L)));
        String sha = r.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])", "k");
        Check.equal(r.evalsha(sha, List.of("n"), List.of("5")), 5L);
        Check.fails("NOSCRIPT", () -> r.evalsha("x".repeat(40)));
        r.functionLoadReplace("#!lua name=smoke\nredis.register_function('twice', function(k, a) return 2 * a[1] end)");
        Check.equal(r.fcall("twice", List.of(), List.of("21")), 42L);
        Check.equal(r.functionList("smoke").get(0).getLibraryName(), "smoke");
    }

    static void publishing() throws Exception {
        ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
        JedisPubSub listener = new JedisPubSub() {
            public void onMessage(String channel, String message) {
                heard.add(channel + " " + message);
            }

            public void onPMessage(String pattern, String channel, String message) {
                heard.add(pattern + " " + channel + " " + message);
            }
        };
        CompletableFuture<Void> ended = CompletableFuture.runAsync(() -> {
            try (Jedis one = new Jedis(address, config)) {
                one.subscribe(listener, "smoke:news");
            }
        });
        Check.waitFor("SUBSCRIBE", () -> r.publish("smoke:news", "one") == 1);
        listener.psubscribe("smoke:w*");
        Check.waitFor("PSUBSCRIBE", () -> r.publish("smoke:weather", "two") == 1);
        Check.waitFor("both messages", () -> heard.size() == 2);
        Check.equal(List.copyOf(heard), List.of("smoke:news one", "smoke:w* smoke:weather two"));
        listener.unsubscribe();
        listener.punsubscribe();
        ended.get(Check.WAIT_SECONDS, TimeUnit.SECONDS);
    }

    static void blocking() throws Exception {
        CompletableFuture<List<String>> popped = CompletableFuture.supplyAsync(() -> r.blpop(30, "smoke:none", "smoke:queue"));
        try (Jedis one = new Jedis(address, config)) {
            Check.waitFor("a blocked client", () -> one.info("clients").contains("blocked_clients:1"));
        }
        r.rpush("smoke:queue", "job");
        Check.equal(popped.get(30, TimeUnit.SECONDS), List.of("smoke:queue", "job"));
        r.zadd("smoke:ranked", 1.5, "a");
        Check.equal(r.bzpopmin(30, "smoke:ranked").getValue(), new Tuple("a", 1.5));
        Check.equal(r.blpop(0.05, "smoke:none"), null);
    }

    static void streams() {
        List<StreamEntryID> ids = new ArrayList<>();
        for (int n = 0; n < 20; ++n) ids.add(r.xadd("smoke:log", XAddParams.xAddParams(), Map.of("n", "" + n)));
        r.xgroupCreate("smoke:log", "workers", new StreamEntryID("0-0"), false);
        Check.fails("BUSYGROUP", () -> r.xgroupCreate("smoke:log", "workers", null, false));
        Map<String, StreamEntryID> fresh = Map.of("smoke:log", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY);
        List<StreamEntry> got = r.xreadGroup("workers", "ann", XReadGroupParams.xReadGroupParams().count(12), fresh).get(0).getValue();
        Check.equal(got.stream().map(StreamEntry::getID).toList(), ids.subList(0, 12));
        Check.equal(r.xreadGroup("workers", "bob", XReadGroupParams.xReadGroupParams().block(30_000), fresh).get(0).getValue().size(), 8);
        Check.equal(r.xack("smoke:log", "workers", ids.subList(0, 10).toArray(new StreamEntryID[0])), 10L);
        Check.equal(r.xpending("smoke:log", "workers").getTotal(), 10L);
        Map.Entry<StreamEntryID, List<StreamEntry>> claimed = r.xautoclaim("smoke:log", "workers", "bob", 0,
            new StreamEntryID("0-0"), XAutoClaimParams.xAutoClaimParams().count(2));
        Check.equal(claimed.getValue().stream().map(StreamEntry::getID).toList(), ids.subList(10, 12));
        Check.equal(r.xinfoGroups("smoke:log").get(0).getPending(), 10L);
        Check.equal(r.xinfoStreamFull("smoke:log").getLength(), 20L);
    }

    static void iterators() {
        Map<String, String> fields = new HashMap<>();
        for (int n = 0; n < 700; ++n) fields.put("f" + n, "" + n);
        r.hset("smoke:hash", fields);
        Map<String, String> found = new HashMap<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<Map.Entry<String, String>> some = r.hscan("smoke:hash", cursor, new ScanParams().count(50));
            some.getResult().forEach(entry -> found.put(entry.getKey(), entry.getValue()));
            cursor = some.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        Check.equal(found, fields);
        Set<String> keys = new HashSet<>();
        redis.clients.jedis.ScanIteration all = r.scanIteration(100, "p:*");
        while (!all.isIterationCompleted()) keys.addAll(all.nextBatch().getResult());
        Check.equal(keys.size(), 1000);
    }

    static void secured(RedisProtocol protocol, int tlsPort, String caFile) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        try (FileInputStream file = new FileInputStream(caFile)) {
            trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        HostAndPort tls = new HostAndPort("127.0.0.1", tlsPort);
        Function<String, DefaultJedisClientConfig> secure = password
            -> options(protocol).ssl(true).sslSocketFactory(context.getSocketFactory()).user("smoke").password(password).build();
        try (JedisPooled one = new JedisPooled(tls, secure.apply("secret"))) {
            one.set("smoke:secret", "x".repeat(200_000));
            Check.equal(one.get("smoke:secret").length(), 200_000);
            Check.fails("NOPERM", () -> one.get("another's"));
        }
        try (JedisPooled one = new JedisPooled(tls, secure.apply("wrong"))) {
            Check.fails("WRONGPASS", () -> one.get("smoke:secret"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        RedisProtocol protocol = arguments[1].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
        address = new HostAndPort("127.0.0.1", Integer.parseInt(arguments[0]));
        config = options(protocol).clientName("smoke").build();
        r = new JedisPooled(address, config);
        strings();
        pipelines();
        transactions();
        scripts();
        publishing();
        blocking();
        streams();
        iterators();
        secured(protocol, Integer.parseInt(arguments[2]), arguments[3]);
        r.close();
        System.out.println("Jedis, " + protocol + ": ok");
    }
}
