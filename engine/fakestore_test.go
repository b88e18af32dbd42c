package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeStore answers from a script, one reply per call of a kind, and notes what was
// sent. The last reply of a kind repeats.
type fakeStore struct {
	mu       sync.Mutex
	apply    []reply
	create   []reply
	inspect  []sight
	transact []error // what Begin or Commit say around fn; nil: what fn says

	sent      []string
	calls     []Call
	creations []Creation
	inquiries []Inquiry
	ends      error // what ends a transaction, in the words of the database
	onApply   func()
	onCreate  func()
}

type reply struct {
	change Change
	err    error
}

type sight struct {
	snapshot Snapshot
	err      error
}

// next takes the first of the replies that are left.
func next[T any](list *[]T) (out T) {
	if len(*list) == 0 {
		return out
	}
	out = (*list)[0]
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	return out
}

func (s *fakeStore) note(format string, args ...any) {
	s.sent = append(s.sent, fmt.Sprintf(format, args...))
}

func (s *fakeStore) count(what string) int {
	n := 0
	for _, line := range s.sent {
		if strings.HasPrefix(line, what) {
			n++
		}
	}
	return n
}

func (s *fakeStore) Bind(context.Context, *Rules) (Table, error) { return fakeTable{s}, nil }

type fakeMark struct{}

func (s *fakeStore) Marked(ctx context.Context) bool { return ctx.Value(fakeMark{}) != nil }

func (s *fakeStore) Transact(ctx context.Context, fn func(context.Context, Tx) error) error {
	s.note("begin")
	if err := fn(context.WithValue(ctx, fakeMark{}, true), fakeTx{}); err != nil {
		s.note("rollback")
		if s.ends != nil && errors.Is(err, s.ends) {
			return &Fault{Class: ClassRetryable, Err: err}
		}
		return err
	}
	s.note("commit")
	return next(&s.transact)
}

// fakeTable is the fakeStore's port.
type fakeTable struct{ s *fakeStore }

func (f fakeTable) CanonicalID(id string) (string, error) {
	if id == "no row can have this" {
		return "", errors.New("the id is not a UUID")
	}
	return id, nil
}

func (f fakeTable) Apply(_ context.Context, tx Tx, call *Call) (Change, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.note("apply%s", within(tx))
	f.s.calls = append(f.s.calls, *call)
	if f.s.onApply != nil {
		f.s.onApply()
	}
	r := next(&f.s.apply)
	return r.change, r.err
}

func (f fakeTable) Create(_ context.Context, tx Tx, c *Creation) (Change, error) {
	f.s.note("create%s", within(tx))
	f.s.calls, f.s.creations = append(f.s.calls, Call{ID: c.ID, Record: c.Record}), append(f.s.creations, *c)
	if f.s.onCreate != nil {
		f.s.onCreate()
	}
	r := next(&f.s.create)
	return r.change, r.err
}

func (f fakeTable) Inspect(_ context.Context, tx Tx, q Inquiry) (Snapshot, error) {
	f.s.note("inspect%s", within(tx))
	f.s.inquiries = append(f.s.inquiries, q)
	r := next(&f.s.inspect)
	return r.snapshot, r.err
}

func (f fakeTable) Get(context.Context, Tx, string) (RowState, bool, error) {
	r := next(&f.s.inspect)
	return r.snapshot.Row, r.snapshot.Found, r.err
}

func (f fakeTable) Journal(context.Context, Tx, string) ([]Entry, error) {
	return nil, next(&f.s.inspect).err
}

func within(tx Tx) string {
	if tx != nil {
		return " in tx"
	}
	return ""
}

// fakeTx is a transaction that nobody may touch.
type fakeTx struct{}

func (fakeTx) ExecContext(context.Context, string, ...any) (sql.Result, error) { panic("touched") }
func (fakeTx) QueryContext(context.Context, string, ...any) (*sql.Rows, error) { panic("touched") }
func (fakeTx) QueryRowContext(context.Context, string, ...any) *sql.Row        { panic("touched") }

// machineOver gives a machine over the fake; retries hardly wait.
func machineOver(tb testing.TB, s *fakeStore, text string, opts ...Option) *Machine {
	tb.Helper()
	opts = append([]Option{WithClock(atNoon), WithRetry(Retry{Attempts: 4, Base: 1, Cap: 1})}, opts...)
	eng, err := New(s, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := eng.Machine(context.Background(), define(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// fault is an error of the database.
func fault(class Class, text string) *Fault { return &Fault{Class: class, Err: errors.New(text)} }

// values puts fields into the order of the definition.
func values(r *Rules, row Row) []any {
	out := make([]any, len(r.def.Fields))
	for name, v := range row {
		out[r.fields[name]] = v
	}
	return out
}

// rowIn is a snapshot of an order.
func (m *Machine) rowIn(state string, version int64, journal ...*Entry) Snapshot {
	s := Snapshot{Found: true, Row: RowState{ID: "o-1", State: m.rules.byName[state], Raw: state, Version: version, Values: make([]any, len(m.rules.def.Fields))}}
	for _, e := range journal {
		s.ByKey = e
	}
	return s
}

func long(n int) string { return strings.Repeat("x", n) }

func wantSent(t *testing.T, s *fakeStore, want ...string) {
	t.Helper()
	if !slices.Equal(s.sent, want) {
		t.Errorf("sent %v, want %v", s.sent, want)
	}
}
