package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// apache/yunikorn-k8shim#31: a call that finds the target reached is no error, and
// an error is matched through every wrapping.
func TestDuplicateIsNoError(t *testing.T) {
	s := &fakeStore{apply: []reply{{}}}
	m := machineOver(t, s, orderWith(""))
	s.inspect = []sight{{snapshot: m.rowIn("shipped", 3)}}
	if res, err := m.ship(context.Background()); err != nil || res.Outcome != AlreadyReached || res.Version != 3 {
		t.Errorf("result %+v, error %v, want AlreadyReached", res, err)
	}
	s.inspect = []sight{{snapshot: m.rowIn("pending", 1)}}
	_, err := m.ship(context.Background())
	err = errors.Join(errors.New("other"), fmt.Errorf("http: %w", fmt.Errorf("service: %w", err)))
	var e *Error
	if !errors.Is(err, ErrNotAllowed) || !errors.As(err, &e) || e.State != "pending" {
		t.Errorf("error %v is not matched through wrapping", err)
	}
}

// aasm/aasm#312: an error says what was true when it was made, whatever happens to
// the row, the snapshot or the error's fields later.
func TestErrorTextIsFixed(t *testing.T) {
	s := &fakeStore{apply: []reply{{}}}
	m := machineOver(t, s, orderWith(""))
	s.inspect = []sight{{snapshot: m.rowIn("pending", 4)}}
	_, err := m.ship(context.Background(), WithKey("k"))
	want := `fsmgen: order.ship "o-1": transition not allowed: the row is pending (version 4), from which is allowed: pay, cancel`
	if err.Error() != want {
		t.Fatalf("error %q, want %q", err, want)
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	s.inspect[0].snapshot.Row.State, s.inspect[0].snapshot.Row.Version = m.rules.byName["paid"], 5
	e.State, e.Version, e.Detail, e.ID = "shipped", 9, "", "o-2"
	if err.Error() != want || fmt.Sprintf("%v", err) != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]*Error{
		"fsmgen: m: no such row":                      newError(ErrNotFound, Error{Machine: "m"}),
		`fsmgen: m.go "a\"b": version conflict: why`:  newError(ErrConflict, Error{Machine: "m", Transition: "go", ID: `a"b`, Detail: "why"}),
		"fsmgen: m.go: why: cause":                    newError(nil, Error{Machine: "m", Transition: "go", Detail: "why", cause: cause}),
		"fsmgen: m: busy, nothing was applied: cause": newError(ErrBusy, Error{Machine: "m", cause: cause}),
	} {
		if err.Error() != want {
			t.Errorf("error %q, want %q", err.Error(), want)
		}
	}
	err := newError(ErrBusy, Error{cause: cause})
	if !errors.Is(err, cause) || !errors.Is(err, ErrBusy) || errors.Is(err, ErrNotFound) {
		t.Errorf("%v must match its kind and its cause, and nothing else", err)
	}
}

// Every kind of error is told apart from every other.
func TestKindsAreDistinct(t *testing.T) {
	kinds := []error{ErrNotFound, ErrNotAllowed, ErrConflict, ErrRejected, ErrMismatch, ErrKeyReused, ErrUnknownState, ErrInvalidArgs, ErrBusy, ErrUnknownOutcome}
	for i, a := range kinds {
		err := error(newError(a, Error{Machine: "m"}))
		for j, b := range kinds {
			if errors.Is(err, b) != (i == j) {
				t.Errorf("%v matches %v: %v", a, b, errors.Is(err, b))
			}
		}
	}
}

func TestGetAnswers(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	ctx := context.Background()
	row := m.rowIn("paid", 2)
	s.inspect = []sight{{snapshot: row}}
	if _, err := m.Get(ctx, "o-1"); err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("a NULL where the definition says never: %v", err)
	} else {
		wantText(t, err, "column amount is NULL", `"o-1"`)
	}
	row.Row.Values = []any{int64(1), nil}
	s.inspect = []sight{{snapshot: row}}
	e, err := m.Get(ctx, "o-1")
	if err != nil || e.ID != "o-1" || e.State != "paid" || e.Version != 2 || len(e.Row()) != 2 {
		t.Errorf("entity %+v, error %v", e, err)
	}
	s.inspect = []sight{{}}
	if _, err := m.Get(ctx, "o-1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no row: %v", err)
	}
	for raw, shown := range map[any]string{"old": `"old"`, "": `""`, nil: "NULL", int64(7): "7"} {
		s.inspect = []sight{{snapshot: Snapshot{Found: true, Row: RowState{ID: "o-1", State: -1, Raw: raw, Version: 2}}}}
		_, err := m.Get(ctx, "o-1")
		var e *Error
		if !errors.Is(err, ErrUnknownState) || !errors.As(err, &e) || e.Version != 2 {
			t.Errorf("status %v: %v, want ErrUnknownState", raw, err)
		}
		wantText(t, err, shown, `"o-1"`)
	}
	for class, busy := range map[Class]bool{ClassRetryable: true, ClassUnknown: true, ClassFatal: false} {
		s.inspect = []sight{{err: &Fault{Class: class, Err: errDriver}}}
		if _, err := m.Get(ctx, "o-1"); errors.Is(err, ErrBusy) != busy || !errors.Is(err, errDriver) {
			t.Errorf("class %d: %v", class, err)
		}
		if _, err := m.Journal(ctx, "o-1"); errors.Is(err, ErrBusy) != busy || !errors.Is(err, errDriver) {
			t.Errorf("class %d: Journal: %v", class, err)
		}
	}
	if entries, err := machineOver(t, s, orderWith("", "journal: false\n")).Journal(ctx, "o-1"); err != nil || entries != nil {
		t.Errorf("a bare machine's journal: %v, %v", entries, err)
	}
}

func TestCreateAnswers(t *testing.T) {
	ctx := context.Background()
	s := &fakeStore{create: []reply{{err: fault(ClassRetryable, "locked")}, {err: fault(ClassUnknown, "gone")}, {change: Change{OK: true, From: -1, Version: 1}}}}
	m := machineOver(t, s, orderWith(""))
	res, err := m.Create(ctx, Row{"id": "o-1", "amount": 5}, WithKey("k"))
	if err != nil || res.Outcome != Applied || res.State != "pending" || res.To != "pending" || res.From != "" || res.Version != 1 || res.Key != "k" {
		t.Errorf("result %+v, error %v", res, err)
	}
	wantSent(t, s, "create", "create", "create")
	if string(s.calls[0].Record.Args) != `{"amount":5}` {
		t.Errorf("the entry's args are %s", s.calls[0].Record.Args)
	}
	for class, says := range map[Class]string{ClassConstraint: "nothing was created", ClassFatal: errDriver.Error()} {
		s := &fakeStore{create: []reply{{err: &Fault{Class: class, Err: errDriver}}}}
		_, err := machineOver(t, s, orderWith("")).Create(ctx, Row{"id": "o-1"})
		if !errors.Is(err, errDriver) || errors.Is(err, ErrBusy) || errors.Is(err, ErrMismatch) {
			t.Errorf("class %d: %v", class, err)
		}
		wantText(t, err, says)
		wantSent(t, s, "create")
	}
}

// Every error says which call it is of, also of calls that are no transition.
func TestErrorsNameTheCall(t *testing.T) {
	ctx := context.Background()
	broken := &Fault{Class: ClassFatal, Err: errors.New("broken")}
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	row := Row{"id": "o-1", "amount": 5}
	create := func(row Row, opts ...CallOption) error {
		_, err := m.Create(ctx, row, opts...)
		return err
	}
	calls := map[string]func() error{
		`fsmgen: order.create "o-1": invalid arguments: the definition has no field "nope"`: func() error { return create(Row{"id": "o-1", "nope": 1}) },
		`fsmgen: order.create: invalid arguments: the id is empty`:                          func() error { return create(Row{"amount": 5}) },
		`fsmgen: order.create "o-1": invalid arguments: an option is nil`:                   func() error { return create(row, nil) },
		`fsmgen: order.create "o-1": the database refused the call; nothing was applied: broken`: func() error {
			s.create = []reply{{err: broken}}
			return create(row)
		},
		`fsmgen: order.get "o-2": no such row: nothing has this id in table orders`: func() error {
			s.inspect = nil
			_, err := m.Get(ctx, "o-2")
			return err
		},
		`fsmgen: order.get: invalid arguments: the id is empty`: func() error {
			_, err := m.Get(ctx, "")
			return err
		},
		`fsmgen: order.journal: invalid arguments: the id is empty`: func() error {
			_, err := m.Journal(ctx, "")
			return err
		},
		`fsmgen: order.ship "o-1": reading failed: broken`: func() error {
			s.inspect = []sight{{err: broken}}
			return m.Can(ctx, "o-1", "ship", nil)
		},
		`fsmgen: order.get "o-1": version conflict: moved, and the row is paid at version 4`: func() error {
			return m.Conflict("", "o-1", "paid", 4, "moved")
		},
	}
	for want, call := range calls {
		err := call()
		var e *Error
		if err == nil || err.Error() != want || !errors.As(err, &e) || (e.Transition != "" && e.Transition != "ship") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// An error of InTx is of no machine, and says whose it is all the same.
func TestInTxErrorsNameTheCall(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		err  error
		fn   error
		ctx  context.Context
		want string
	}{
		"in a transaction": {ctx: context.WithValue(ctx, fakeMark{}, true), want: "fsmgen: InTx: busy, nothing was applied: use the transaction that is open: a second one would wait for it for ever: the context belongs to an open transaction of this store"},
		"no turn":          {err: &Fault{Class: ClassUnsent, Err: errDriver, Hint: "another transaction holds the writer"}, want: "fsmgen: InTx: busy, nothing was applied: another transaction holds the writer: what the driver said"},
		"unknown":          {err: &Fault{Class: ClassUnknown, Err: errDriver}, want: "fsmgen: InTx: unknown outcome: COMMIT was sent"},
		"again and again":  {err: &Fault{Class: ClassRetryable, Err: errDriver}, want: "fsmgen: InTx: busy, nothing was applied: given up after repeated tries: what the driver said"},
	} {
		s := &fakeStore{transact: []error{c.err}}
		if c.ctx == nil {
			c.ctx = ctx
		}
		err := machineOver(t, s, orderWith("")).eng.InTx(c.ctx, func(context.Context, Tx) error { return nil })
		var e *Error
		if !errors.As(err, &e) || e.Machine != "" || e.Transition != "" {
			t.Errorf("%s: %v with %+v, want an error of no machine", name, err, e)
		}
		wantText(t, err, c.want)
	}
}

// Version counts where State says that the row was read: a row can be at version 0.
func TestErrorsTellWhetherTheRowWasRead(t *testing.T) {
	ctx := context.Background()
	s := &fakeStore{apply: []reply{{}}, create: []reply{{}}}
	m := machineOver(t, s, orderWith(""))
	calls := map[string]func() error{
		"Fire": func() error { _, err := m.ship(ctx); return err },
		"Can":  func() error { return m.Can(ctx, "o-1", "ship", nil) },
		"Get":  func() error { _, err := m.Get(ctx, "o-1"); return err },
	}
	for raw, want := range map[any]string{nil: "NULL", "": `""`, "old": "old", int64(7): "7", `"`: `"`} {
		s.inspect = []sight{{snapshot: Snapshot{Found: true, Row: RowState{ID: "o-1", State: -1, Raw: raw}}}}
		for name, call := range calls {
			var e *Error
			if err := call(); !errors.As(err, &e) || !errors.Is(err, ErrUnknownState) || e.State != want || e.Version != 0 {
				t.Errorf("%s of a row with status %v: %v with state %q, want %q", name, raw, err, e.State, want)
			}
		}
	}
	s.inspect = []sight{{}}
	for name, call := range calls {
		var e *Error
		if err := call(); !errors.As(err, &e) || !errors.Is(err, ErrNotFound) || e.State != "" {
			t.Errorf("%s of no row: %v", name, err)
		}
	}
	if got := m.rowIn("pending", 0); got.Row.Version != 0 {
		t.Fatal(got)
	} else {
		s.inspect = []sight{{snapshot: got}}
	}
	var e *Error
	if err := calls["Fire"](); !errors.As(err, &e) || e.State != "pending" || e.Version != 0 {
		t.Errorf("a row at version 0: %v with %+v", err, e)
	}
}
