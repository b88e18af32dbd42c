package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/faultproxy"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
)

// proxied opens a store through a proxy, and lock holds a table of it until it is released.
var proxied = map[string]func(t *testing.T) (store *persistence.Store, proxy *faultproxy.Proxy, lock []string){
	"postgres": func(t *testing.T) (*persistence.Store, *faultproxy.Proxy, []string) {
		t.Helper()
		dsn, err := url.Parse(servertest.PostgresSchema(t))
		check(t, err)
		proxy := startProxy(t, dsn.Host)
		dsn.Host = proxy.Addr()
		store, err := postgres.Open(t.Context(), dsn.String(), postgres.WithConnections(8))
		check(t, err)
		return store, proxy, []string{"BEGIN", "LOCK TABLE ords IN ACCESS EXCLUSIVE MODE", "ROLLBACK"}
	},
	"mariadb": func(t *testing.T) (*persistence.Store, *faultproxy.Proxy, []string) {
		t.Helper()
		cfg := servertest.MariaDBDatabase(t).Clone()
		proxy := startProxy(t, cfg.Addr)
		cfg.Addr = proxy.Addr()
		store, err := mysql.Open(t.Context(), cfg.FormatDSN(), mysql.WithConnections(8))
		check(t, err)
		return store, proxy, []string{"LOCK TABLES ords WRITE", "UNLOCK TABLES"}
	},
}

func startProxy(t *testing.T, addr string) *faultproxy.Proxy {
	t.Helper()
	proxy, err := faultproxy.Start(t.Context(), addr, 1)
	check(t, err)
	t.Cleanup(func() { check(t, proxy.Close()) })
	return proxy
}

// TestDeadlineInASharedCommit: a call is answered when its context has ended, whoever
// else is in its batch and whatever keeps that.
func TestDeadlineInASharedCommit(t *testing.T) {
	for name, open := range proxied {
		for what, patient := range map[string]int{"all have a deadline": 0, "some have none": 12} {
			for _, frozen := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, frozen %v", name, what, frozen), func(t *testing.T) {
					t.Parallel()
					store, proxy, lock := open(t)
					t.Cleanup(func() { check(t, store.Close()) })
					_, m := machineOf(t, store, attacked)
					for i := range 20 {
						_, err := m.Create(t.Context(), engine.Row{"id": fmt.Sprint("x", i)})
						check(t, err)
					}
					release := proxy.CutAll
					if frozen {
						proxy.Freeze()
					} else {
						release = holding(t, store, lock)
					}
					var waiting sync.WaitGroup
					for i := range patient {
						waiting.Go(func() {
							_, err := m.Fire(context.WithoutCancel(t.Context()), "add", fmt.Sprint("x", i), nil, engine.WithKey("patient"))
							answered(t, err)
						})
					}
					impatient(t, m)
					proxy.Set(faultproxy.Plan{}) // for new connections
					release()
					waiting.Wait()
				})
			}
		}
	}
}

// holding runs statements but the last on a connection of its own, and the last of them
// when it is to let go.
func holding(t *testing.T, store *persistence.Store, statements []string) (release func()) {
	t.Helper()
	conn, err := store.DB().Connx(t.Context())
	check(t, err)
	last := len(statements) - 1
	for _, text := range statements[:last] {
		_, err := conn.ExecContext(t.Context(), text)
		check(t, err)
	}
	return func() {
		_, err := conn.ExecContext(t.Context(), statements[last])
		check(t, errors.Join(err, conn.Close()))
	}
}

// impatient makes many calls with a deadline, and wants each answered soon after it.
func impatient(t *testing.T, m *engine.Machine) {
	t.Helper()
	const deadline = 300 * time.Millisecond
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			start := time.Now()
			_, err := m.Fire(ctx, "add", fmt.Sprint("x", i), nil, engine.WithKey("impatient"))
			if took := time.Since(start); took > deadline+time.Second {
				t.Errorf("answered after %v: %v", took, err)
			}
			answered(t, err)
		})
	}
	calls.Wait()
}

// answered wants an answer that is none to be sure of, or an applied call.
func answered(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, engine.ErrBusy) && !errors.Is(err, engine.ErrUnknownOutcome) {
		t.Error(err)
	}
}
