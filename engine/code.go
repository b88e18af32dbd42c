package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
)

// Hook is one piece of Go code that a definition names. Exactly one of its
// functions is set: the one for the place where the definition names it.
type Hook struct {
	// Guard reads the row and may veto. It runs before anything is written, at most
	// once per attempt, and not at all for a duplicate.
	Guard func(ctx context.Context, e Event) error
	// Effect runs after the CAS, in the same transaction. Its error undoes the
	// transition. Calls of machines go through In(tx), with the context it is given.
	// It runs again where a database asks for another attempt, after ROLLBACK: what it
	// does outside of tx must bear being done twice.
	//
	// It passes errors of tx on. One that ended the transaction (a deadlock on MySQL, a
	// trigger's RAISE(ROLLBACK) on SQLite) undoes the transition too; were it ignored, what
	// the effect writes after it would stand by itself. In transactions of the store's own
	// that is refused or rolled back; in a transaction of the caller's, and in a pool of the
	// caller's on SQLite, nothing can keep the database from it, and the call's error says
	// so. Nor does the effect send what commits (COMMIT, and CREATE or ALTER on MySQL).
	Effect func(ctx context.Context, tx Tx, e Event) error
	// After runs after COMMIT, at most once. Its error or panic never fails the call.
	After func(ctx context.Context, e Event) error
}

// Code is the Go code a definition names, by name. Generated packages build it.
type Code map[string]Hook

// Event is what a hook is told. The values in it are the hook's own: nothing that it does
// to them is written, or seen by the caller or another hook.
type Event struct {
	Transition string
	// Entity is the row as it was before the transition.
	Entity Entity
	// Args are the call's arguments in the order of the definition; nil where absent.
	Args []any
	// Result is what the transition did; empty in a guard.
	Result Result
}

// own is the event with values of its own.
func (e Event) own() Event {
	e.Args, e.Entity.Values = ownValues(e.Args), ownValues(e.Entity.Values)
	return e
}

func ownValues(values []any) []any {
	out := slices.Clone(values)
	for i, v := range out {
		out[i] = ownValue(v)
	}
	return out
}

// check holds the code against the names of the definition: each must be there, of
// the right kind, and none more.
func (c Code) check(r *Rules) error {
	used := map[string]bool{}
	var faults []error
	need := func(transition, place, name string, has bool) {
		if name == "" {
			return
		}
		used[name] = true
		if !has {
			faults = append(faults, fmt.Errorf("transition %s names %s %q, for which no Go code is given", transition, place, name))
		}
	}
	for i := range r.def.Transitions {
		t := &r.def.Transitions[i]
		need(t.Name, "guard", t.Guard, c[t.Guard].Guard != nil)
		need(t.Name, "effect", t.Effect, c[t.Effect].Effect != nil)
		need(t.Name, "after", t.After, c[t.After].After != nil)
	}
	for name := range c {
		if !used[name] {
			faults = append(faults, fmt.Errorf("Go code %q is named by no transition", name))
		}
	}
	return errors.Join(faults...)
}

// effectError marks an error as the effect's own, whatever it wraps.
type effectError struct{ err error }

func (e *effectError) Error() string { return e.err.Error() }
func (e *effectError) Unwrap() error { return e.err }

// afterQueue collects the `after` hooks of one transaction, in the order of the
// transitions, until it has committed.
type afterQueue struct {
	mu    sync.Mutex
	hooks []func(ctx context.Context) error
}

// queueKey finds, in a context, the queue of a transaction. A context alone does not say
// which one a call goes into: In names it, and a call without In commits by itself.
type queueKey struct{ tx any }

func queueOf(ctx context.Context, tx Tx) *afterQueue {
	if tx == nil {
		return nil
	}
	q, _ := ctx.Value(queueKey{identity(tx)}).(*afterQueue)
	return q
}

func (q *afterQueue) within(ctx context.Context, tx Tx) context.Context {
	return context.WithValue(ctx, queueKey{identity(tx)}, q)
}

// identity is what two values have in common that are the same transaction: what they
// embed, down to the *sql.Tx or *sql.Conn of an *sqlx.Tx, an *sqlx.Conn or a wrapper of
// the caller's.
func identity(tx Tx) any {
	v := reflect.ValueOf(tx)
	for {
		inner := embedded(v)
		if !inner.IsValid() {
			break
		}
		v = inner
	}
	if !v.Comparable() { // equal to nothing
		return &afterQueue{}
	}
	return v.Interface()
}

// embedded is the transaction that a struct embeds; invalid where it embeds none.
func embedded(v reflect.Value) reflect.Value {
	s := reflect.Indirect(v)
	for i := 0; s.Kind() == reflect.Struct && i < s.NumField(); i++ {
		f := s.Field(i)
		if !s.Type().Field(i).Anonymous || !f.CanInterface() {
			continue
		}
		if f.Kind() == reflect.Interface {
			f = f.Elem()
		}
		if !f.IsValid() || (f.Kind() == reflect.Pointer && f.IsNil()) {
			continue
		}
		if _, ok := f.Interface().(Tx); ok {
			return f
		}
	}
	return reflect.Value{}
}

func (q *afterQueue) add(hook func(ctx context.Context) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hooks = append(q.hooks, hook)
}

// run runs each hook once and returns their errors, panics included.
func (q *afterQueue) run(ctx context.Context) error {
	q.mu.Lock()
	hooks := q.hooks
	q.hooks = nil
	q.mu.Unlock()
	var errs []error
	for _, hook := range hooks {
		if err := contain(ctx, hook); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// contain turns a panic of an after hook into an error: the row is committed, and
// the caller must learn so.
func contain(ctx context.Context, hook func(ctx context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return hook(ctx)
}

// runCode runs a transition that names Go code: key and row are read first, so that
// a duplicate runs no guard, and the CAS pins the version that was read.
//
// That holds for an answer after a lost COMMIT too: until that has landed or is undone the
// row stays as the first try found it, fitting, and once it is another nothing of that try
// can land any more.
func (m *Machine) runCode(ctx context.Context, q *request) (Result, error) {
	for {
		v, s, err := m.judge(ctx, q)
		switch {
		case err != nil:
			return Result{}, m.inspectError(ctx, &q.attempt, err)
		case v.err != nil:
			return Result{}, v.err
		case !v.again:
			return m.duplicate(&q.attempt, v, s), nil
		}
		event := m.event(q, s)
		if err := m.guard(ctx, q, s, &event); err != nil {
			return Result{}, err
		}
		res, done, err := m.attemptCode(ctx, q, s, event)
		if done {
			return res, err
		}
	}
}

// event describes the call to a hook.
func (m *Machine) event(q *request, s *Snapshot) Event {
	return Event{
		Transition: m.rules.def.Transitions[q.call.Transition].Name, Args: q.call.Args,
		Entity: Entity{ID: s.Row.ID, State: m.rules.stateName(s.Row.State), Version: s.Row.Version, Values: s.Row.Values, def: m.rules.def},
	}
}

// guard asks the guard, through a looplab machine made for this call.
func (m *Machine) guard(ctx context.Context, q *request, s *Snapshot, event *Event) error {
	t := &m.rules.transitions[q.call.Transition]
	if t.def.Guard == "" {
		return nil
	}
	_, target, err := m.rules.Target(q.call.Transition, s.Row.State, m.rules.Input(q.call.Transition, s.Row.Values, q.call.Args, q.call.Now))
	if err != nil { // classification has just found that it fits
		return m.callError(nil, &q.attempt, "judging the row again failed", err)
	}
	veto, err := guardWithFSM(ctx, t.def.Name, event.Entity.State, m.rules.stateName(target), func(ctx context.Context) error {
		return m.code[t.def.Guard].Guard(ctx, event.own())
	})
	over := ctx.Err()
	switch {
	case over != nil && (veto == nil || errors.Is(veto, over)): // nobody said no
		return m.ended(&q.attempt, over)
	case err != nil:
		return m.callError(nil, &q.attempt, "asking guard "+t.def.Guard+" failed", err)
	case veto == nil:
		return nil
	case q.unknown != nil: // no answer: the row was read without its lock, and an earlier COMMIT may be on its way
		return m.unknownOutcome(&q.attempt, fmt.Errorf("guard %s: %s", t.def.Guard, veto.Error()))
	}
	e := m.rules.errorOf(&q.attempt)
	e.Detail, e.cause = "guard "+t.def.Guard, veto
	m.rules.addRow(&e, &s.Row)
	return newError(ErrRejected, e)
}

// ended says what a context means that ended between the tries of a call.
func (m *Machine) ended(a *attempt, over error) error {
	switch {
	case a.unknown != nil:
		return m.unknownOutcome(a, over)
	case a.sends > 0:
		return m.callError(ErrBusy, a, "the context ended before the next try", over)
	}
	return over
}

// attemptCode sends the pinned CAS with the effect. done is false where the row, or
// the database, asks for another attempt.
func (m *Machine) attemptCode(ctx context.Context, q *request, s *Snapshot, event Event) (res Result, done bool, _ error) {
	q.sends++
	call := q.call
	call.Version = s.Row.Version
	queue := queueOf(ctx, m.tx)
	own := queue == nil
	if own {
		queue = &afterQueue{}
	}
	mark, applied := queue.mark(), false
	defer func() { // also where the effect panics, which whoever called it may survive
		if !applied {
			queue.reset(mark)
		}
	}()
	m.attach(&call, q, event, queue)
	change, err := m.table.Apply(ctx, m.tx, &call)
	if err == nil && change.OK {
		applied = true
		res = m.applied(&q.attempt, change)
		if call.Effect == nil {
			event.Result = res
			m.queueAfter(queue, event)
		}
		return m.finish(ctx, res, queue, own), true, nil
	}
	// True after a lost COMMIT too: the effect runs under the row's lock and at the version
	// that was read, so the first try has ended without applying anything.
	var effect *effectError
	if errors.As(err, &effect) && !effect.retryable(err) {
		return Result{}, true, m.callError(nil, &q.attempt, "effect "+m.rules.def.Transitions[q.call.Transition].Effect+" failed, nothing was applied", effect.err)
	}
	if err == nil { // the row moved under the guard
		q.missed(s)
		if err := m.again(ctx, &q.attempt, nil); err != nil {
			return Result{}, true, err
		}
		return Result{}, false, nil
	}
	if end, err := m.failed(ctx, &q.attempt, err); end {
		return Result{}, true, err
	}
	return Result{}, false, nil
}

// retryable reports whether the whole unit is worth running again: a database, and not
// the effect, stood in the way. That may be another database, of which the effect passes
// an error on. It makes no difference: nothing of the unit was applied, and an effect can
// be run again after a deadlock of its own too. A deadline of something the effect called
// is the effect's.
func (e *effectError) retryable(err error) bool {
	if !errors.Is(e, ErrBusy) && (errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded)) {
		return false
	}
	var f *Fault
	return errors.As(err, &f) && f.Class == ClassRetryable
}

// mark and reset take back the hooks of an attempt that was undone.
func (q *afterQueue) mark() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.hooks)
}

func (q *afterQueue) reset(mark int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hooks = q.hooks[:mark]
}

// attach gives the call its effect. The `after` of the transition enters the queue
// before the effect runs, so that hooks run in the order of the transitions.
func (m *Machine) attach(call *Call, q *request, event Event, queue *afterQueue) {
	t := m.rules.transitions[call.Transition].def
	if t.Effect == "" {
		return
	}
	call.Effect = func(ctx context.Context, tx Tx, change Change) error {
		event.Result = m.applied(&q.attempt, change)
		m.queueAfter(queue, event)
		if err := m.code[t.Effect].Effect(queue.within(ctx, tx), tx, event.own()); err != nil {
			return &effectError{err}
		}
		return nil
	}
}

// queueAfter puts the transition's `after` into the queue.
func (m *Machine) queueAfter(queue *afterQueue, event Event) {
	t := m.rules.transitions[m.rules.byTransit[event.Transition]].def
	if t.After == "" {
		return
	}
	event = event.own() // now: the caller may use his values again before the hooks run
	queue.add(func(ctx context.Context) error {
		if err := m.code[t.After].After(ctx, event); err != nil {
			return fmt.Errorf("after %s of %s.%s %q: %w", t.After, m.rules.def.Name, t.Name, event.Entity.ID, err)
		}
		return nil
	})
}

// finish runs the hooks of a committed call, or hands them to whoever commits.
func (m *Machine) finish(ctx context.Context, res Result, queue *afterQueue, own bool) Result {
	switch {
	case !own: // InTx, or the outer transition, runs them
	case m.tx != nil:
		res.after = queue.run
	default:
		res.AfterErr = queue.run(context.WithoutCancel(ctx))
	}
	return res
}
