package engine

import (
	"context"
	"time"
)

// attempt is what a transition and a creation have in common across their tries.
type attempt struct {
	asks    Inquiry // what is read to judge the call; its key is the one in force
	keyOwn  bool    // the engine made that key for this call
	sends   int     // how often the write was sent
	misses  int     // how often nothing matched although the call fits, in a caller's transaction
	at      int64   // the version at which it fitted last, and nothing matched
	stuck   int     // how often that was so, one time after the other
	unknown error   // the last write whose outcome was never learnt
	since   time.Time
}

// sent is a call that can be sent, and judged where that applied nothing.
type sent interface {
	self() *attempt
	write(ctx context.Context, m *Machine) (Change, error)
	judge(m *Machine, s *Snapshot) verdict
}

func (a *attempt) self() *attempt { return a }

// missed notes that a write changed nothing of a row that the call fits.
func (a *attempt) missed(s *Snapshot) {
	if a.stuck == 0 || !s.Found || a.at != s.Row.Version {
		a.at, a.stuck = s.Row.Version, 0
	}
	a.stuck++
}

// dropped reports whether it is not another writer who comes between: as many writes at one
// version have changed nothing.
func (a *attempt) dropped() bool { return !a.creates() && a.unknown == nil && a.stuck >= 3 }

// creates reports whether the call is a creation.
func (a *attempt) creates() bool { return a.asks.Transition < 0 }

// inquiry says what must be read to judge the call.
func (a *attempt) inquiry() Inquiry {
	in := a.asks
	if a.keyOwn && a.unknown == nil {
		in.Key = "" // made for this call, and every write of it was answered
	}
	return in
}

// send sends a call until it is answered.
func (m *Machine) send(ctx context.Context, call sent) (Result, error) {
	a := call.self()
	for {
		a.sends++
		change, err := call.write(ctx, m)
		if err == nil && change.OK {
			return m.applied(a, change), nil
		}
		missed := err == nil
		if err != nil {
			done, err := m.failed(ctx, a, err)
			if done {
				return Result{}, err
			}
			if err != nil { // repeat the write
				continue
			}
		}
		v, s, err := m.judge(ctx, call)
		switch {
		case err != nil:
			return Result{}, m.inspectError(ctx, a, err)
		case v.err != nil:
			return Result{}, v.err
		case !v.again:
			return m.duplicate(a, v, s), nil
		}
		if missed {
			a.missed(s)
		}
		if err := m.again(ctx, a, nil); err != nil {
			return Result{}, err
		}
	}
}

// judge reads what the row says and classifies.
func (m *Machine) judge(ctx context.Context, call sent) (verdict, *Snapshot, error) {
	s, err := m.table.Inspect(ctx, m.tx, call.self().inquiry())
	if err != nil {
		return verdict{}, nil, err
	}
	return call.judge(m, &s), &s, nil
}

func (m *Machine) applied(a *attempt, c Change) Result {
	to := m.rules.stateName(c.To)
	return Result{ID: a.asks.ID, From: m.rules.stateName(c.From), To: to, State: to, Version: c.Version, Outcome: Applied, Key: a.asks.Key}
}

// duplicate is the result of a call that had been applied before: the first run's edge
// where a key tells it, else the edge that entered the state.
func (m *Machine) duplicate(a *attempt, v verdict, s *Snapshot) Result {
	res := Result{ID: a.asks.ID, Outcome: v.outcome, Key: a.asks.Key, First: v.first}
	if s.Found {
		res.ID, res.State, res.Version = s.Row.ID, m.rules.stateName(s.Row.State), s.Row.Version
	}
	res.To = res.State
	if e := v.first; e != nil {
		res.From, res.To = m.rules.nameNow(e.From), m.rules.nameNow(e.To)
		if v.outcome == Replayed || v.outcome == Applied {
			res.Version = e.Version
		}
	}
	if v.outcome == Applied {
		res.First = nil
	}
	return res
}
