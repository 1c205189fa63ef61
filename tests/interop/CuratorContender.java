// The Curator side of the interop tests: one contender, driven by lines on stdin. contender.h says
// what the lines mean.
//
//   java CuratorContender WHO HOSTS PATH SESSION_MS
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.StandardLockInternalsDriver;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

public final class CuratorContender {
  private static final int DIGITS = 20; // of the counter, so that a write never changes its length

  // Curator's own way of queueing, with a stamp when the entry is known to be there.
  private static final class Driver extends StandardLockInternalsDriver {
    volatile long joined;

    @Override
    public String createsTheLock(CuratorFramework client, String path, byte[] data)
        throws Exception {
      String entry = super.createsTheLock(client, path, data);
      joined = System.nanoTime();
      return entry;
    }
  }

  // A mutex that tells which entry is its own.
  private static final class Mutex extends InterProcessMutex {
    Mutex(CuratorFramework client, String path, Driver driver) {
      super(client, path, driver);
    }

    String entry() {
      return getLockPath();
    }
  }

  private final String who;
  private final CuratorFramework client;
  private final Driver driver = new Driver();
  private final Mutex mutex;

  private CuratorContender(String who, String hosts, String path, int session) throws Exception {
    this.who = who;
    client = CuratorFrameworkFactory.newClient(
        hosts, session, 15_000, new ExponentialBackoffRetry(100, 5));
    client.start();
    if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) {
      throw new IllegalStateException("no connection to " + hosts);
    }
    mutex = new Mutex(client, path, driver);
  }

  // "TOKEN ENTRY" of our hold; the token is the czxid, which all libraries share.
  private String held() throws Exception {
    String path = mutex.entry();
    Stat stat = client.checkExists().forPath(path);
    if (stat == null) {
      throw new IllegalStateException("granted, but " + path + " does not exist");
    }
    return stat.getCzxid() + " " + path.substring(path.lastIndexOf('/') + 1);
  }

  // Read and write in two steps, with a pause between: two at once lose an update.
  private static void addOne(RandomAccessFile counter) throws Exception {
    byte[] text = new byte[DIGITS];
    counter.seek(0);
    counter.readFully(text);
    long value = Long.parseLong(new String(text, StandardCharsets.US_ASCII));
    LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(1_000_000));
    counter.seek(0);
    counter.write(String.format("%0" + DIGITS + "d", value + 1).getBytes(
        StandardCharsets.US_ASCII));
  }

  private void turns(int turns, String counterFile, String historyFile, boolean lock)
      throws Exception {
    try (RandomAccessFile counter = new RandomAccessFile(counterFile, "rw");
        OutputStream history =
            Files.newOutputStream(Paths.get(historyFile), StandardOpenOption.APPEND)) {
      for (int turn = 1; turn <= turns; ++turn) {
        long call = System.nanoTime();
        driver.joined = 0;
        if (lock) {
          mutex.acquire();
        }
        long granted = System.nanoTime();
        String held = lock ? held() : "0 -";
        addOne(counter);
        String line = who + " " + turn + " " + call + " " + driver.joined + " " + granted + " "
            + System.nanoTime() + " " + held + "\n";
        history.write(line.getBytes(StandardCharsets.US_ASCII)); // one write: lines stay whole
        if (lock) {
          mutex.release();
        }
      }
    }
    say("DONE", "");
  }

  private void acquire(long ms) throws Exception {
    boolean granted = true;
    if (ms < 0) {
      mutex.acquire();
    } else {
      granted = mutex.acquire(ms, TimeUnit.MILLISECONDS);
    }
    say(granted ? "GRANTED" : "REFUSED", granted ? " " + held() : "");
  }

  private static void say(String what, String more) {
    System.out.println(what + " " + System.nanoTime() + more);
    System.out.flush();
  }

  private void obey(String command) throws Exception {
    String[] words = command.split(" ");
    switch (words[0]) {
      case "turns":
        turns(Integer.parseInt(words[1]), words[2], words[3], words.length < 5);
        break;
      case "try":
        acquire(0);
        break;
      case "acquire":
        acquire(Long.parseLong(words[1]));
        break;
      case "wait":
        acquire(-1);
        break;
      case "release":
        mutex.release();
        say("RELEASED", "");
        break;
      default:
        throw new IllegalArgumentException("unknown command: " + command);
    }
  }

  public static void main(String[] args) throws Exception {
    LinkedBlockingQueue<String> commands = new LinkedBlockingQueue<>();
    // A thread of its own, so that the end of our parent is seen while we wait for the lock.
    Thread reader = new Thread(() -> {
      try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
          commands.add(line);
        }
      } catch (Exception e) {
        System.err.println("CuratorContender: stdin: " + e);
      }
      Runtime.getRuntime().halt(3);
    });
    reader.setDaemon(true);
    reader.start();
    try {
      CuratorContender contender =
          new CuratorContender(args[0], args[1], args[2], Integer.parseInt(args[3]));
      say("READY", "");
      for (String line = commands.take(); !line.equals("quit"); line = commands.take()) {
        contender.obey(line);
      }
      contender.client.close();
    } catch (Exception e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
    Runtime.getRuntime().halt(0);
  }
}
