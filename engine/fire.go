package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Fire runs a transition on the row called id. The result says what happened:
// applied now, or applied before. Everything else is an error of this package.
func (m *Machine) Fire(ctx context.Context, transition, id string, args Args, opts ...CallOption) (Result, error) {
	return m.fire(ctx, transition, id, nil, args, opts)
}

// FireValues is Fire for generated code: args are in the order of the
// definition's args, nil for an absent optional one. The slice is the engine's.
func (m *Machine) FireValues(ctx context.Context, transition, id string, args []any, opts ...CallOption) (Result, error) {
	return m.fire(ctx, transition, id, args, nil, opts)
}

func (m *Machine) fire(ctx context.Context, transition, id string, values []any, named Args, opts []CallOption) (Result, error) {
	if len(m.eng.observers) == 0 {
		q, err := m.prepare(ctx, transition, id, values, named, opts, false)
		if err != nil {
			return Result{}, err
		}
		return m.run(ctx, q)
	}
	start := m.eng.now()
	q, err := m.prepare(ctx, transition, id, values, named, opts, false)
	var res Result
	if err == nil {
		res, err = m.run(ctx, q)
	}
	o := Observation{Machine: m.rules.def.Name, Transition: transition, ID: id, Result: res, Err: err, Took: m.eng.now().Sub(start)}
	if q != nil {
		o.Attempts = q.sends
	}
	m.observe(ctx, o)
	return res, err
}

func (m *Machine) observe(ctx context.Context, o Observation) {
	for _, obs := range m.eng.observers {
		obs.Observe(ctx, o)
	}
}

// request is one call with everything classification must know of it.
type request struct {
	attempt
	call    Call
	derived bool // the key was built from arguments
}

// prepare checks a call against the definition before anything is sent. A probe
// (Can) needs no key.
func (m *Machine) prepare(ctx context.Context, transition, id string, values []any, named Args, opts []CallOption, probe bool) (*request, error) {
	id, err := m.checkCall(ctx, transition, "", id)
	if err != nil {
		return nil, err
	}
	i, ok := m.rules.byTransit[transition]
	if !ok {
		return nil, m.rules.unknownTransition(transition, id)
	}
	o, err := collect(opts)
	if err != nil {
		return nil, m.rules.invalid(i, id, err)
	}
	t := &m.rules.transitions[i]
	if values == nil {
		if values, err = t.order(named); err != nil {
			return nil, m.rules.invalid(i, id, err)
		}
	}
	if err := t.coerceArgs(values); err != nil {
		return nil, m.rules.invalid(i, id, err)
	}
	q := newRequest(Call{ID: id, Version: AnyVersion, Transition: i, Args: values, Now: m.eng.clock()})
	q.derived = t.def.Key.Derived()
	if err := m.settle(q, t, &o, probe); err != nil {
		return nil, m.rules.invalid(i, id, err)
	}
	return q, nil
}

// newRequest is a request whose options are yet to be settled.
func newRequest(call Call) *request {
	return &request{call: call, attempt: attempt{asks: Inquiry{ID: call.ID, Transition: call.Transition, Version: call.Version}}}
}

func (r *Rules) unknownTransition(name, id string) error {
	names := make([]string, len(r.def.Transitions))
	for i := range r.def.Transitions {
		names[i] = r.def.Transitions[i].Name
	}
	return newError(ErrInvalidArgs, Error{
		Machine: r.def.Name, Transition: name, ID: id,
		Detail: "the definition has no such transition; it has " + listOr(names, "none"),
	})
}

// settle applies the call's options: version, and for a journaled machine the record.
func (m *Machine) settle(q *request, t *transitionRules, o *callOptions, probe bool) error {
	if o.hasVer {
		if o.version == AnyVersion {
			return fmt.Errorf("WithVersion(%d): no row can be at this version", o.version)
		}
		q.asks.Version, q.call.Version = o.version, o.version
	}
	if !m.rules.def.Journal.Enabled {
		return bareOptions(o)
	}
	record, err := recordOf(o, t.def.Emit)
	if err != nil {
		return err
	}
	derived := ""
	if q.derived {
		derived = t.derivedKey(q.call.Args)
	}
	if err := record.chooseKey(o, derived, t.def.Key.Required && !probe); err != nil {
		return err
	}
	record.Fingerprint = t.fingerprint(q.call.Args)
	record.Args = t.argsJSON(q.call.Args)
	q.call.Record = record
	q.asks.Key, q.keyOwn = record.Key, record.KeyOwn
	return nil
}

// bareOptions refuses what a machine without journal has no place for.
func bareOptions(o *callOptions) error {
	switch {
	case o.hasKey:
		return errors.New("WithKey: the machine has no journal, so it cannot remember keys")
	case o.actor != "" || o.meta != nil:
		return errors.New("WithActor and WithMeta: the machine has no journal to keep them in")
	}
	return nil
}

// run sends the call, or asks its Go code first.
func (m *Machine) run(ctx context.Context, q *request) (Result, error) {
	if m.rules.transitions[q.call.Transition].def.HasCode() {
		return m.runCode(ctx, q)
	}
	return m.send(ctx, q)
}

func (q *request) write(ctx context.Context, m *Machine) (Change, error) {
	return m.table.Apply(ctx, m.tx, &q.call)
}

func (q *request) judge(m *Machine, s *Snapshot) verdict {
	v := m.rules.classify(q, s)
	if v.err != nil && q.unknown != nil && !m.rules.def.Journal.Enabled && !m.rules.settled(q, s) {
		v.err = m.unknownOutcome(&q.attempt, errors.New(v.err.Error())) // not an answer any more
	}
	return v
}

// argOf reads one argument out of a journal entry.
func argOf(e *Entry, name string, t expr.Type) (any, error) {
	raw, ok, err := jsonMember(e.Args, name)
	if err != nil {
		return nil, fmt.Errorf("the journal's args of version %d are not readable: %w", e.Version, err)
	}
	if !ok {
		return nil, nil
	}
	return expr.FromJSON(t, raw)
}
