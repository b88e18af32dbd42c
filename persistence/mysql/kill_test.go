package mysql

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/fsmgen/fsmgen/engine"
)

// private is a server of the test's own, which may be killed.
type private struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

func newPrivate(t *testing.T) *private {
	t.Helper()
	for _, name := range []string{"mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs a server of its own, to kill it: %v", err)
		}
	}
	dir, err := os.MkdirTemp("", "kill") //nolint:usetesting // short: a socket's path has a limit
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &private{dir: dir, port: listener.Addr().(*net.TCPAddr).Port}
	check(t, listener.Close())
	args := []string{"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--auth-root-authentication-method=normal", "--skip-test-db"}
	if os.Getuid() == 0 {
		args = append(args, "--user=root")
	}
	if out, err := exec.CommandContext(t.Context(), "mariadb-install-db", args...).CombinedOutput(); err != nil {
		t.Skipf("mariadb-install-db: %v\n%s", err, out)
	}
	return p
}

func (p *private) config() *driver.Config {
	cfg := driver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Logger = "root", "tcp", "127.0.0.1:"+strconv.Itoa(p.port), "mysql", &driver.NopLogger{}
	return cfg
}

// start runs the server and waits until it answers.
func (p *private) start(t *testing.T) {
	t.Helper()
	args := []string{
		"--no-defaults", "--datadir=" + filepath.Join(p.dir, "data"), "--socket=" + filepath.Join(p.dir, "s"), "--pid-file=" + filepath.Join(p.dir, "pid"),
		"--port=" + strconv.Itoa(p.port), "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=32M", "--log-error=" + filepath.Join(p.dir, "log"),
	}
	if os.Getuid() == 0 {
		args = append(args, "--user=root")
	}
	p.cmd = exec.Command("mariadbd", args...)
	check(t, p.cmd.Start())
	db, err := pool(p.config())
	check(t, err)
	defer db.Close() //nolint:errcheck // it only asks
	for end := time.Now().Add(time.Minute); db.PingContext(t.Context()) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			t.Fatalf("the server does not come up:\n%s", log)
		}
	}
}

// kill ends the server as a power switch would, short of the disk's own cache.
func (p *private) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// TestServerKilled is DBFACTS H.7: no acknowledged call is lost, none is doubled, and
// each call that failed is settled by its key.
func TestServerKilled(t *testing.T) {
	server := newPrivate(t)
	server.start(t)
	defer func() { server.kill() }()
	cfg := server.config()
	admin, err := pool(cfg)
	check(t, err)
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE killed")
	check(t, err)
	check(t, admin.Close())
	cfg.DBName = "killed"
	r := openAt(t, cfg, counter, WithConnections(8))
	const callers = 8
	for c := range callers {
		r.create(t, rowID(c), nil)
	}
	acked, failed, serial := 0, 0, [callers]int{}
	for range rounds(2, 20) {
		errs := [callers]string{} // the key of the call that failed
		stop := make(chan struct{})
		var wg sync.WaitGroup
		done := [callers]int{}
		for c := range callers {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					key := fmt.Sprint(c, "-", serial[c])
					serial[c]++
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					_, err := r.m.Fire(ctx, "add", rowID(c), engine.Args{"by": 1}, engine.WithKey(key))
					cancel()
					if err != nil {
						errs[c] = key
						return
					}
					done[c]++
				}
			})
		}
		time.Sleep(time.Duration(rounds(300, 700)) * time.Millisecond)
		server.kill()
		close(stop)
		wg.Wait()
		server.start(t)
		for c := range callers {
			acked += done[c]
			if errs[c] == "" {
				continue
			}
			failed++
			if err := r.settle(t, rowID(c), errs[c]); err != nil {
				t.Fatalf("call %s is not settled: %v", errs[c], err)
			}
		}
	}
	for c := range callers {
		if _, version := r.where(t, rowID(c)); version != int64(1+serial[c]) {
			t.Errorf("row %d is at version %d after %d calls", c, version, serial[c])
		}
	}
	t.Logf("%d acknowledged, %d failed and settled", acked, failed)
	r.whole(t)
}

// settle repeats a call under its key until there is an answer.
func (r *rig) settle(t *testing.T, id, key string) (err error) {
	t.Helper()
	for range 20 {
		if _, err = r.m.Fire(t.Context(), "add", id, engine.Args{"by": 1}, engine.WithKey(key)); err == nil {
			return nil
		}
	}
	return err
}
