// The three locks of etcd that contenders of etcd_contender.go take: Go's concurrency.Mutex, the
// server's lock service, and etcdctl.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/etcdserver/api/v3lock/v3lockpb"
)

type peer interface {
	// The key of our entry; empty: ctx ended first, and no entry is left.
	lock(ctx context.Context) (string, error)
	unlock() error
	joined() int64 // our last entry was surely in the queue then; 0: not known
	close() error  // nothing is left behind
}

func newPeer(how []string, client *clientv3.Client, name string, ttl int) (peer, error) {
	switch {
	case how[0] == "mutex":
		return newMutexPeer(client, name, ttl)
	case how[0] == "v3lock":
		service := v3lockpb.NewLockClient(client.ActiveConnection())
		return &v3lockPeer{client: client, service: service, name: name, ttl: ttl}, nil
	case how[0] == "etcdctl" && len(how) == 2:
		return &etcdctlPeer{how[1], []string{"--endpoints=" + strings.Join(client.Endpoints(), ","),
			"lock", fmt.Sprintf("--ttl=%d", ttl), name}, nil}, nil
	}
	return nil, fmt.Errorf("no such lock: %v", how)
}

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), long)
}

// ---- concurrency.Mutex: one session, one key for all turns

type mutexPeer struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
	kv      *stampedKV
}

func newMutexPeer(client *clientv3.Client, name string, ttl int) (peer, error) {
	kv := &stampedKV{KV: client.KV}
	client.KV = kv
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	if err != nil {
		return nil, err
	}
	return &mutexPeer{session, concurrency.NewMutex(session, name), kv}, nil
}

func (p *mutexPeer) lock(ctx context.Context) (string, error) {
	err := p.mutex.Lock(ctx)
	if err == nil || ctx.Err() == nil {
		return p.mutex.Key(), err
	}
	// It has removed its entry if it gave up its wait, but not if it gave up the transaction.
	if p.mutex.Key() != "\x00" {
		return "", p.unlock()
	}
	return "", nil
}

func (p *mutexPeer) unlock() error {
	ctx, cancel := bounded()
	defer cancel()
	return p.mutex.Unlock(ctx)
}

func (p *mutexPeer) joined() int64 { return p.kv.stamp }
func (p *mutexPeer) close() error  { return p.session.Close() }

// Stamps when a transaction was answered. The only one is that of Mutex.Lock: from then on the
// entry is in the queue.
type stampedKV struct {
	clientv3.KV
	stamp int64
}

type stampedTxn struct {
	clientv3.Txn
	kv *stampedKV
}

func (kv *stampedKV) Txn(ctx context.Context) clientv3.Txn {
	return stampedTxn{kv.KV.Txn(ctx), kv}
}
func (t stampedTxn) If(cs ...clientv3.Cmp) clientv3.Txn { return stampedTxn{t.Txn.If(cs...), t.kv} }
func (t stampedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	return stampedTxn{t.Txn.Then(ops...), t.kv}
}
func (t stampedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	return stampedTxn{t.Txn.Else(ops...), t.kv}
}
func (t stampedTxn) Commit() (*clientv3.TxnResponse, error) {
	answer, err := t.Txn.Commit()
	t.kv.stamp = now()
	return answer, err
}

// ---- the service v3lock of the server

// A lease for each turn: the name of the key is the lease, and of a call that was given up the
// server removes the key some time later, from under a second call if that has the same lease.
type v3lockPeer struct {
	client  *clientv3.Client
	service v3lockpb.LockClient
	name    string
	ttl     int
	lease   clientv3.LeaseID
	orphan  context.CancelFunc // ends the renewal; nil: there is no lease
	key     []byte
}

func (p *v3lockPeer) lock(ctx context.Context) (string, error) {
	bound, cancel := bounded()
	defer cancel()
	granted, err := p.client.Grant(bound, int64(p.ttl))
	if err != nil {
		return "", err
	}
	alive, orphan := context.WithCancel(context.Background())
	p.lease, p.orphan = granted.ID, orphan
	renewals, err := p.client.KeepAlive(alive, p.lease)
	if err != nil {
		orphan()
		return "", err
	}
	go func() {
		for range renewals {
		}
	}()
	answer, err := p.service.Lock(ctx, &v3lockpb.LockRequest{Name: []byte(p.name), Lease: int64(p.lease)})
	// The server knows our deadline, and may be the first to say that it has passed.
	if _, bound := ctx.Deadline(); bound && err != nil && strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		<-ctx.Done()
	}
	if err != nil && ctx.Err() != nil {
		return "", p.close()
	}
	if err != nil {
		return "", err
	}
	p.key = answer.Key
	return string(p.key), nil
}

func (p *v3lockPeer) unlock() error {
	ctx, cancel := bounded()
	defer cancel()
	if _, err := p.service.Unlock(ctx, &v3lockpb.UnlockRequest{Key: p.key}); err != nil {
		return err
	}
	return p.close()
}

func (p *v3lockPeer) joined() int64 { return 0 }

func (p *v3lockPeer) close() error {
	if p.orphan == nil {
		return nil
	}
	p.orphan()
	p.orphan = nil
	ctx, cancel := bounded()
	defer cancel()
	_, err := p.client.Revoke(ctx, p.lease)
	return err
}

// ---- etcdctl lock NAME: a process for each turn. It prints the key, and holds until SIGTERM.

type etcdctlPeer struct {
	program   string
	arguments []string
	process   *etcdctl // nil: none
}

type etcdctl struct {
	cmd    *exec.Cmd
	said   chan string // its first line; closed at its end
	ended  chan error
	stderr bytes.Buffer
}

// Killed with us: our death is the death of the holder.
func (p *etcdctlPeer) start() error {
	e := &etcdctl{cmd: exec.Command(p.program, p.arguments...), said: make(chan string, 1),
		ended: make(chan error, 1)}
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.cmd.Stderr = &e.stderr
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err = e.cmd.Start(); err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			if first {
				e.said <- lines.Text()
			}
		}
		close(e.said)
		e.ended <- e.cmd.Wait()
	}()
	p.process = e
	return nil
}

var errStuck = errors.New("etcdctl did not end, and was killed")

// Its end, in time.
func (p *etcdctlPeer) end() error {
	e := p.process
	p.process = nil
	ctx, cancel := bounded()
	defer cancel()
	select {
	case err := <-e.ended:
		if err != nil {
			return fmt.Errorf("etcdctl: %v: %s", err, strings.TrimSpace(e.stderr.String()))
		}
		return nil
	case <-ctx.Done():
		e.cmd.Process.Kill()
		<-e.ended
		return errStuck
	}
}

func (p *etcdctlPeer) lock(ctx context.Context) (string, error) {
	if err := p.start(); err != nil {
		return "", err
	}
	select {
	case key, ok := <-p.process.said:
		if ok {
			return key, nil
		}
		return "", fmt.Errorf("it ended before it had the lock: %v", p.end())
	case <-ctx.Done():
		// It removes its entry, and says by its exit code that it gave up, or that it did not.
		p.process.cmd.Process.Signal(syscall.SIGTERM)
		if err := p.end(); errors.Is(err, errStuck) {
			return "", err
		}
		return "", nil
	}
}

func (p *etcdctlPeer) unlock() error {
	if p.process == nil {
		return errors.New("etcdctl does not run")
	}
	if err := p.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.end()
}

func (p *etcdctlPeer) joined() int64 { return 0 }

func (p *etcdctlPeer) close() error {
	if p.process == nil {
		return nil
	}
	return p.unlock()
}
