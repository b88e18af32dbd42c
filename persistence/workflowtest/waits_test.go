package workflowtest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

const shortWait = 300 * time.Millisecond

// narrowStores opens stores whose one writing connection a call waits for no longer than
// shortWait.
var narrowStores = map[string]func(t *testing.T) (*persistence.Store, error){
	"sqlite": func(t *testing.T) (*persistence.Store, error) {
		t.Helper()
		return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "waits.db"), sqlite.WithWait(shortWait))
	},
	"postgres": func(t *testing.T) (*persistence.Store, error) {
		t.Helper()
		return postgres.Open(t.Context(), servertest.PostgresSchema(t), postgres.WithConnections(1), postgres.WithWait(shortWait))
	},
	"mariadb": func(t *testing.T) (*persistence.Store, error) {
		t.Helper()
		return mysql.Open(t.Context(), servertest.MariaDBDatabase(t).FormatDSN(), mysql.WithConnections(1), mysql.WithWait(shortWait))
	},
}

// machineOf binds a definition to a store in which there is nothing yet.
func machineOf(t *testing.T, store *persistence.Store, yaml string) (*engine.Engine, *engine.Machine) {
	t.Helper()
	def := parse(t, yaml)
	check(t, store.Migrate(t.Context(), def))
	eng, err := engine.New(store)
	check(t, err)
	m, err := eng.Machine(t.Context(), def)
	check(t, err)
	return eng, m
}

// TestWaitForAConnection: whoever waits for a connection that nobody gives back waits
// once, for as long as the store says, and is told for what.
func TestWaitForAConnection(t *testing.T) {
	for name, open := range narrowStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			check(t, err)
			t.Cleanup(func() { closeIdle(t, store) })
			eng, m := machineOf(t, store, attacked)
			_, err = m.Create(t.Context(), engine.Row{"id": "x"})
			check(t, err)
			conn, err := store.DB().Conn(t.Context())
			check(t, err)
			defer conn.Close() //nolint:errcheck // it goes back
			ctx, cancel := context.WithTimeout(t.Context(), shortWait/3)
			defer cancel()
			fire := func(ctx context.Context) error { _, err := m.Fire(ctx, "pay", "x", nil); return err }
			for what, call := range map[string]func() error{
				"fire":        func() error { return fire(context.WithoutCancel(ctx)) },
				"create":      func() error { _, err := m.Create(t.Context(), engine.Row{"id": "y"}); return err },
				"transaction": func() error { return eng.InTx(t.Context(), func(context.Context, engine.Tx) error { return nil }) },
				"at once": func() error {
					var wg sync.WaitGroup
					for range 8 {
						wg.Go(func() { busySoon(t, "one of many", func() error { return fire(t.Context()) }) })
					}
					wg.Wait()
					return fire(t.Context())
				},
			} {
				busySoon(t, what, call)
			}
			start := time.Now()
			ctx, cancel = context.WithTimeoutCause(t.Context(), shortWait/3, errImpatient)
			defer cancel()
			err = fire(ctx)
			if took := time.Since(start); took > 2*shortWait/3 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errImpatient) || strings.Contains(err.Error(), "writer") {
				t.Errorf("with a deadline: %v after %v, want it and its cause", err, took)
			}
		})
	}
}

var errImpatient = errors.New("the caller is impatient")

// busySoon wants ErrBusy that says for what was waited, within little more than the wait.
func busySoon(t *testing.T, what string, call func() error) {
	t.Helper()
	start := time.Now()
	err := call()
	took := time.Since(start)
	if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "In(tx)") || strings.Contains(err.Error(), "holds the writer") {
		t.Errorf("%s: %v, want ErrBusy that says for what it waited", what, err)
	}
	if what != "at once" && (took < shortWait || took > 2*shortWait) {
		t.Errorf("%s: answered after %v, want %v", what, took, shortWait)
	}
}
