// What the programs beside this file share: expectations, and waiting for what happens elsewhere.
import java.util.Objects;
import java.util.concurrent.Callable;

final class Check {
    static final int WAIT_SECONDS = 30;

    static void that(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    static void equal(Object found, Object expected) {
        if (!Objects.equals(found, expected)) throw new AssertionError("found " + found + ", expected " + expected);
    }

    static void waitFor(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + WAIT_SECONDS * 1_000_000_000L;
        while (!condition.call()) {
            that(System.nanoTime() < deadline, what);
            Thread.sleep(10);
        }
    }

    // Runs `act`, whose error has to contain `text`.
    static void fails(String text, Callable<?> act) {
        Object found;
        try {
            found = act.call();
        } catch (Exception error) {
            StringBuilder said = new StringBuilder();
            for (Throwable cause = error; cause != null; cause = cause.getCause()) said.append(cause).append('\n');
            that(said.toString().contains(text), said.toString());
            return;
        }
        throw new AssertionError(text + " was to fail, and gave " + found);
    }
}
