// The side of etcd's own locks in the interop tests: one contender, driven by lines on stdin.
// contender.h says what the lines mean.
//
//	etcd_contender WHO HOSTS NAME SESSION_MS mutex | v3lock | etcdctl PROGRAM
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/pkg/logutil"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	digits = 20               // of the counter, so that a write never changes its length
	long   = 30 * time.Second // nothing but a wait for the lock takes longer
)

// Java's System.nanoTime() is this clock, and Go's own does not tell its value.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func say(what string, more ...string) {
	fmt.Println(strings.Join(append([]string{what, strconv.FormatInt(now(), 10)}, more...), " "))
}

type contender struct {
	who    string
	prefix string
	client *clientv3.Client
	peer   peer
	key    string // of our hold
}

// The token of our hold: the create revision of the key, which all programs share. What Go calls
// the header's revision is another number for those who waited.
func (c *contender) token() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	found, err := c.client.Get(ctx, c.key)
	if err != nil {
		return "", err
	}
	if len(found.Kvs) == 0 {
		return "", fmt.Errorf("granted, but %s does not exist", c.key)
	}
	return strconv.FormatInt(found.Kvs[0].CreateRevision, 10), nil
}

// All keys of the prefix, the oldest first.
func (c *contender) queue() (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	return c.client.Get(ctx, c.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
}

func (c *contender) acquire(ctx context.Context) error {
	var err error
	if c.key, err = c.peer.lock(ctx); err != nil {
		return err
	}
	if c.key == "" {
		say("REFUSED")
		return nil
	}
	token, err := c.token()
	if err == nil {
		say("GRANTED", token, c.key)
	}
	return err
}

// Go has TryLock since 3.5, the others have nothing like it: look first.
func (c *contender) try() error {
	found, err := c.queue()
	if err != nil {
		return err
	}
	if len(found.Kvs) > 0 {
		say("REFUSED")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	return c.acquire(ctx)
}

// Read and write in two steps, with a pause between: two at once lose an update.
func addOne(counter *os.File) error {
	text := make([]byte, digits)
	if _, err := counter.ReadAt(text, 0); err != nil {
		return err
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(rand.Intn(1000)) * time.Microsecond)
	_, err = counter.WriteAt([]byte(fmt.Sprintf("%0*d", digits, value+1)), 0)
	return err
}

func (c *contender) turn(number int, counter, history *os.File, lock bool) error {
	call, joined, token := now(), int64(0), "0"
	var err error
	if lock {
		if c.key, err = c.peer.lock(context.Background()); err != nil {
			return err
		}
		joined = c.peer.joined()
	}
	granted := now()
	if lock {
		if token, err = c.token(); err != nil {
			return err
		}
	}
	if err = addOne(counter); err != nil {
		return err
	}
	// One write: lines stay whole. No name of the entry: on etcd they have no numbers.
	line := fmt.Sprintf("%s %d %d %d %d %d %s -\n", c.who, number, call, joined, granted, now(), token)
	if _, err = history.WriteString(line); err != nil || !lock {
		return err
	}
	return c.peer.unlock()
}

func (c *contender) turns(count, counterFile, historyFile string, lock bool) error {
	counter, err := os.OpenFile(counterFile, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer counter.Close()
	history, err := os.OpenFile(historyFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer history.Close()
	all, err := strconv.Atoi(count)
	for number := 1; err == nil && number <= all; number++ {
		err = c.turn(number, counter, history, lock)
	}
	if err == nil {
		say("DONE")
	}
	return err
}

// The queue in its order, as KEY:REVISION. Keys further down belong to other locks.
func (c *contender) entries() error {
	found, err := c.queue()
	if err != nil {
		return err
	}
	var all []string
	for _, kv := range found.Kvs {
		if name := strings.TrimPrefix(string(kv.Key), c.prefix); !strings.Contains(name, "/") {
			all = append(all, fmt.Sprintf("%s:%d", name, kv.CreateRevision))
		}
	}
	say("ENTRIES", all...)
	return nil
}

func (c *contender) obey(command string) error {
	words := strings.Fields(command)
	switch {
	case len(words) >= 4 && words[0] == "turns":
		return c.turns(words[1], words[2], words[3], len(words) == 4)
	case command == "try":
		return c.try()
	case len(words) == 2 && words[0] == "acquire":
		limit, err := time.ParseDuration(words[1] + "ms")
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return c.acquire(ctx)
	case command == "wait":
		return c.acquire(context.Background())
	case command == "release":
		err := c.peer.unlock()
		if err == nil {
			say("RELEASED")
		}
		return err
	case command == "entries":
		return c.entries()
	}
	return errors.New("unknown command: " + command)
}

func run(arguments []string, commands <-chan string) error {
	if len(arguments) < 5 {
		return errors.New("usage: etcd_contender WHO HOSTS NAME SESSION_MS " +
			"mutex | v3lock | etcdctl PROGRAM")
	}
	name, how := arguments[2], arguments[4:]
	hosts := strings.Split(arguments[1], ",")
	ms, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	quiet := logutil.DefaultZapLoggerConfig // a call that is given up is no news
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	client, err := clientv3.New(
		clientv3.Config{Endpoints: hosts, DialTimeout: long, LogConfig: &quiet})
	if err != nil {
		return err
	}
	defer client.Close()
	c := &contender{who: arguments[0], prefix: name + "/", client: client}
	if c.peer, err = newPeer(how, client, name, (ms+999)/1000); err != nil {
		return err
	}
	if _, err = c.queue(); err != nil {
		return err
	}
	say("READY")
	for command := range commands {
		if command == "quit" {
			return c.peer.close()
		}
		if err := c.obey(command); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	// A process that dies with its parent dies with the thread that started it: keep this one.
	runtime.LockOSThread()
	rand.Seed(int64(os.Getpid()))
	commands := make(chan string)
	// In the background, so that the end of our parent is seen while we wait for the lock.
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			commands <- in.Text()
		}
		os.Exit(3)
	}()
	if err := run(os.Args[1:], commands); err != nil {
		fmt.Fprintf(os.Stderr, "etcd_contender %v: %v\n", os.Args[1:], err)
		os.Exit(1)
	}
}
