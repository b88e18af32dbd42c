// Package hooktest holds what must be true of Go code on transitions, on every store:
// hooks that panic, block, call the machine again, or swallow a failing statement.
package hooktest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/memory"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is a machine with Go code in every place. note leaves the row where it is.
const job = `
machine: job
table: {name: jobs}
fields: {note: {type: string, nullable: true}}
initial: open
states:
  open:
  done:
  failed:
  running: {final: true}
  closed: {final: true}
transitions:
  note:   {from: open, to: open, args: {text: string}, set: {note: args.text}, key: required, effect: on_note}
  finish: {from: open, to: done, guard: may_finish, effect: on_finish, after: told_finish, duplicates: own}
  close:  {from: [open, done], to: closed, after: told_close, duplicates: own}
  fail:   {from: done, to: failed}
  retry:  {from: failed, to: running}
`

// wait bounds how long a call waits for what another holds; a test that is refused at
// once takes less, and one that hangs takes more than hang.
const (
	wait = time.Second
	hang = 20 * time.Second
)

// site is a store with the machine, and the hooks of a test.
type site struct {
	*testing.T
	hooks
	name  string
	sql   *persistence.Store // nil in memory
	mem   *memory.Store
	eng   *engine.Engine
	m     *engine.Machine
	after []error // what InTx told the observer
}

// hooks are the Go code of the machine; nil lets everything pass.
type hooks struct {
	guard   func(ctx context.Context, e engine.Event) error
	effect  func(ctx context.Context, tx engine.Tx, e engine.Event) error
	onNote  func(ctx context.Context, tx engine.Tx, e engine.Event) error
	told    func(ctx context.Context, e engine.Event) error
	guards  atomic.Int64
	effects atomic.Int64

	mu   sync.Mutex
	said []string // by after hooks, in order
}

func (h *hooks) code() engine.Code {
	after := func(ctx context.Context, e engine.Event) error {
		h.mu.Lock()
		h.said = append(h.said, fmt.Sprintf("%s v%d", e.Transition, e.Result.Version))
		h.mu.Unlock()
		if h.told != nil {
			return h.told(ctx, e)
		}
		return nil
	}
	return engine.Code{
		"may_finish": {Guard: func(ctx context.Context, e engine.Event) error {
			h.guards.Add(1)
			if h.guard != nil {
				return h.guard(ctx, e)
			}
			return nil
		}},
		"on_finish": {Effect: func(ctx context.Context, tx engine.Tx, e engine.Event) error {
			h.effects.Add(1)
			if h.effect != nil {
				return h.effect(ctx, tx, e)
			}
			return nil
		}},
		"on_note": {Effect: func(ctx context.Context, tx engine.Tx, e engine.Event) error {
			if h.onNote != nil {
				return h.onNote(ctx, tx, e)
			}
			return nil
		}},
		"told_finish": {After: after},
		"told_close":  {After: after},
	}
}

// Observe keeps what after hooks returned whose caller was InTx.
func (s *site) Observe(_ context.Context, o engine.Observation) {
	if o.Machine == "" {
		s.after = append(s.after, o.Result.AfterErr)
	}
}

// onEach runs a test on every store, with a job called "j" that is open.
func onEach(t *testing.T, run func(s *site)) {
	t.Helper()
	for _, name := range []string{"memory", "sqlite", "postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := &site{T: t, name: name}
			def, err := definitions.Parse("job.yaml", []byte(job))
			s.must(err)
			s.m = s.bind(s.open(def), def)
			s.create("j")
			run(s)
			s.idle()
		})
	}
}

// open opens the store, with the table of a definition.
func (s *site) open(def *definitions.Machine) engine.Store {
	s.Helper()
	if s.name == "memory" {
		s.mem = memory.New(memory.WithWait(wait))
		return s.mem
	}
	var err error
	switch s.name {
	case "sqlite":
		s.sql, err = sqlite.Open(s.Context(), filepath.Join(s.TempDir(), "hooks.db"), sqlite.WithWait(wait))
	case "postgres":
		s.sql, err = postgres.Open(s.Context(), servertest.PostgresSchema(s.T), postgres.WithWait(wait))
	default:
		s.sql, err = mysql.Open(s.Context(), servertest.MariaDBDatabase(s.T).FormatDSN(), mysql.WithWait(wait))
	}
	s.must(err)
	s.Cleanup(func() { s.must(s.sql.Close()) })
	s.must(s.sql.Migrate(s.Context(), def))
	return s.sql
}

func (s *site) bind(store engine.Store, def *definitions.Machine) *engine.Machine {
	s.Helper()
	var err error
	s.eng, err = engine.New(store, engine.WithObserver(s))
	s.must(err)
	m, err := s.eng.Machine(s.Context(), def, s.code())
	s.must(err)
	return m
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) create(id string) {
	s.Helper()
	_, err := s.m.Create(s.Context(), engine.Row{"id": id})
	s.must(err)
}

// fire makes a call that must be answered before anybody would call it a hang.
func (s *site) fire(ctx context.Context, m *engine.Machine, transition string, opts ...engine.CallOption) (engine.Result, error) {
	s.Helper()
	begun := time.Now()
	var args engine.Args
	if transition == "note" {
		args = engine.Args{"text": "x"}
	}
	res, err := m.Fire(ctx, transition, "j", args, opts...)
	if took := time.Since(begun); took > hang {
		s.Errorf("%s took %v", transition, took)
	}
	return res, err
}

// row holds the job, and the length of its journal.
func (s *site) row(state string, version int64) {
	s.Helper()
	got, err := s.m.Get(context.Background(), "j")
	s.must(err)
	entries, err := s.m.Journal(context.Background(), "j")
	s.must(err)
	if got.State != state || got.Version != version || int64(len(entries)) != version {
		s.Errorf("the row is in %s at version %d with %d entries, want %s at version %d", got.State, got.Version, len(entries), state, version)
	}
}

// idle: no connection is in use, as soon as whoever gives one back has run.
func (s *site) idle() {
	s.Helper()
	if s.sql == nil {
		return
	}
	for end := time.Now().Add(3 * time.Second); s.sql.DB().Stats().InUse+s.readers() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%d connections are in use", s.sql.DB().Stats().InUse)
		}
	}
}

func (s *site) readers() int { return s.sql.Reader().Stats().InUse }

// Tx is a transaction that the test holds as a caller does.
type Tx interface {
	engine.Tx
	Commit() error
	Rollback() error
}

func (s *site) begin() Tx {
	s.Helper()
	if s.mem != nil {
		tx, err := s.mem.Begin(s.Context())
		s.must(err)
		return tx
	}
	tx, err := s.sql.DB().BeginTxx(s.Context(), nil)
	s.must(err)
	return tx
}
