package engine

import (
	"cmp"
	"fmt"
	"math"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// verdict is what a miss meant.
type verdict struct {
	outcome Outcome
	err     *Error // the answer, where it is not success
	again   bool   // everything fits now: it changed in between
	first   *Entry
}

// classify decides what a CAS that matched nothing meant. It is pure: the first
// row of this table that fits decides.
//
//	journal row with this key          Replayed, Applied, ErrKeyReused or ErrMismatch
//	no such row; unknown status        ErrNotFound; ErrUnknownState
//	a source, but another version      ErrConflict
//	a source, but a condition is false ErrRejected
//	a source, and all fits             once more
//	a declared key that was not seen   ErrNotAllowed (ErrConflict)
//	a version that is not the row's    ErrConflict
//	a target                           ErrMismatch or AlreadyReached
//	passed                             ErrMismatch or AlreadyPassed
//	anything else                      ErrNotAllowed
func (r *Rules) classify(q *request, s *Snapshot) verdict {
	t := &r.transitions[q.call.Transition]
	if s.ByKey != nil {
		return r.byKey(q, s)
	}
	if !s.Found {
		return r.answer(q, s, ErrNotFound, "nothing has this id in table "+r.def.Table.Name)
	}
	if s.Row.State < 0 {
		return r.answer(q, s, ErrUnknownState, fmt.Sprintf("row %q has status %s, which is none of the machine's states", q.call.ID, printRaw(s.Row.Raw)))
	}
	if t.sources[s.Row.State] {
		return r.fromSource(q, s)
	}
	stale := q.asks.Version != AnyVersion && q.asks.Version != s.Row.Version
	if t.def.Key.Declared() {
		if stale {
			return r.conflict(q, s)
		}
		return r.notAllowed(q, s, neverSeen(q))
	}
	if stale && !r.appliedAt(t, q, s) {
		return r.conflict(q, s)
	}
	return r.duplicate(q, s)
}

// byKey answers a call whose key the journal knows.
func (r *Rules) byKey(q *request, s *Snapshot) verdict {
	e := s.ByKey
	t := &r.transitions[q.call.Transition]
	switch {
	case e.Attempt == q.call.Attempt:
		return verdict{outcome: Applied, first: e}
	case e.Fingerprint == q.call.Fingerprint && e.Transition == t.def.Name:
		return verdict{outcome: Replayed, first: e}
	case q.derived:
		return r.answer(q, s, ErrMismatch, fmt.Sprintf("key %s was applied at version %d with args %s, now asked with %s", q.call.Key, e.Version, e.Args, t.argsJSON(q.call.Args)))
	}
	return r.answer(q, s, ErrKeyReused, fmt.Sprintf("key %q was applied at version %d for %s with args %s; this call is %s with args %s",
		q.call.Key, e.Version, entryName(e), e.Args, t.def.Name, t.argsJSON(q.call.Args)))
}

func entryName(e *Entry) string {
	if e.Transition == "" {
		return "the creation"
	}
	return e.Transition
}

// fromSource answers a miss on a row from which the transition does leave.
func (r *Rules) fromSource(q *request, s *Snapshot) verdict {
	if q.asks.Version != AnyVersion && q.asks.Version != s.Row.Version {
		return r.conflict(q, s)
	}
	if s.Row.Version >= r.lastVersion {
		mend := "UPDATE it by hand to a lower one"
		if r.lastVersion < math.MaxInt64 {
			mend = "give the column " + r.def.Table.Version + " a wider type"
		}
		return r.answer(q, s, nil, "the row is at the last version there is, none follows; "+mend)
	}
	in := r.Input(q.call.Transition, s.Row.Values, q.call.Args, q.call.Now)
	move, _, err := r.Target(q.call.Transition, s.Row.State, in)
	if err == nil {
		_, err = r.Assign(q.call.Transition, move, in, s.Row.Values)
	}
	if err != nil {
		return r.answer(q, s, ErrRejected, err.Error())
	}
	return verdict{again: true}
}

// appliedAt reports whether the write that left the named version was this
// transition: then the version is stale because of an earlier run of this call.
func (r *Rules) appliedAt(t *transitionRules, q *request, s *Snapshot) bool {
	if !r.def.Journal.Enabled {
		return s.Row.Version == q.asks.Version+1 && t.targets[s.Row.State]
	}
	return s.Next != nil && s.Next.Transition == t.def.Name
}

// duplicate answers where the state is no source: reached, passed, or neither.
func (r *Rules) duplicate(q *request, s *Snapshot) verdict {
	t := &r.transitions[q.call.Transition]
	ours := s.Own != nil && !s.Undone
	reached, passed := t.targets[s.Row.State], false
	switch t.def.Duplicates {
	case definitions.DuplicatesRefuse:
		return r.notAllowed(q, s, "")
	case definitions.DuplicatesOwn:
		reached = reached && ours && r.enteredByOwn(s)
		passed = ours
	default:
		passed = ours || t.passed()[s.Row.State]
	}
	if !reached && !passed {
		return r.notAllowed(q, s, "")
	}
	if why := r.otherIdentity(t, q, s); why != "" {
		return r.answer(q, s, ErrMismatch, why)
	}
	v := verdict{outcome: AlreadyPassed}
	if reached {
		v.outcome = AlreadyReached
	}
	if s.Entered != nil && r.inJournal(s.Entered.To) == s.Row.State { // else it was moved by hand
		v.first = s.Entered
	}
	return v
}

// enteredByOwn: the last entry that entered the state is the transition's own.
func (r *Rules) enteredByOwn(s *Snapshot) bool {
	return r.inJournal(s.Own.To) == s.Row.State && (s.Entered == nil || s.Own.Version >= s.Entered.Version)
}

// inJournal gives the index of the state that a journal entry names, which may be
// by an alias; -1 where it is none of the machine's.
func (r *Rules) inJournal(name string) int {
	if i, ok := r.byName[name]; ok {
		return i
	}
	if i, ok := r.byText[name]; ok {
		return i
	}
	return -1
}

// nameNow is what a state is called today that an entry names: it may have been renamed
// since.
func (r *Rules) nameNow(name string) string {
	if i := r.inJournal(name); i >= 0 {
		return r.def.States[i].Name
	}
	return name
}

// settled reports whether an answer to a bare call still holds although an earlier
// write of the same call may have been applied: only if the row shows that it was not.
func (r *Rules) settled(q *request, s *Snapshot) bool {
	t := &r.transitions[q.call.Transition]
	switch {
	case !s.Found || s.Row.State < 0:
		return false
	case q.asks.Version == AnyVersion: // no target leads back into a source
		return t.sources[s.Row.State]
	case s.Row.Version == q.asks.Version+1:
		return !t.targets[s.Row.State]
	}
	return s.Row.Version <= q.asks.Version
}

// otherIdentity says in words how the request differs from the one that was
// applied, or nothing if it is the same.
func (r *Rules) otherIdentity(t *transitionRules, q *request, s *Snapshot) string {
	for _, part := range t.identity {
		a, f := &t.def.Args[part.arg], &r.def.Fields[part.field]
		was, from, equal := s.Row.Values[part.field], "the row's "+f.Name, equalStored
		if s.Own != nil && !s.Undone {
			// An entry whose args were erased, or spoilt, knows no more than none does.
			if v, err := argOf(s.Own, a.Name, a.Type); err == nil && len(s.Own.Args) > 0 {
				was, from, equal = v, fmt.Sprintf("%s of version %d", a.Name, s.Own.Version), expr.Equal
			}
		}
		if !equal(a.Type, was, q.call.Args[part.arg]) {
			return fmt.Sprintf("%s is %s, this call's %s is %s", from, expr.FormatValue(a.Type, was), a.Name, expr.FormatValue(a.Type, q.call.Args[part.arg]))
		}
	}
	return ""
}

func (r *Rules) conflict(q *request, s *Snapshot) verdict {
	return r.answer(q, s, ErrConflict, fmt.Sprintf("the call names version %d, the row is at version %d in %s", q.asks.Version, s.Row.Version, r.stateName(s.Row.State)))
}

// neverSeen says why a call with a declared key is no duplicate, where it brought one.
func neverSeen(q *request) string {
	if q.call.Key == "" || q.call.KeyOwn {
		return ""
	}
	return fmt.Sprintf("; key %q was never applied to this row, and where a transition declares `key` only a seen key makes a duplicate", q.call.Key)
}

func (r *Rules) notAllowed(q *request, s *Snapshot, more string) verdict {
	return r.answer(q, s, ErrNotAllowed, fmt.Sprintf("the row is %s (version %d), from which is allowed: %s%s",
		r.stateName(s.Row.State), s.Row.Version, listOr(r.allowed[s.Row.State], "nothing"), more))
}

// answer makes the error for a judged row.
func (r *Rules) answer(call sent, s *Snapshot, kind error, detail string) verdict {
	e := r.errorOf(call.self())
	e.Detail = detail
	if s.Found {
		r.addRow(&e, &s.Row)
	}
	return verdict{err: newError(kind, e)}
}

// addRow says where the row was when the call was judged.
func (r *Rules) addRow(e *Error, row *RowState) {
	e.State, e.Version = r.stateOf(row), row.Version
	if row.State >= 0 {
		e.Allowed = r.allowed[row.State]
	}
}

// stateOf is what an error calls the row's state: its name, or what the column holds
// where that is none. It is never "", which says that the row was not read.
func (r *Rules) stateOf(row *RowState) string {
	text := ""
	switch v := row.Raw.(type) {
	case []byte:
		text = string(v)
	case string:
		text = v
	}
	if row.State >= 0 {
		text = r.stateName(row.State)
	}
	return cmp.Or(text, printRaw(row.Raw))
}

// printRaw prints a status column as it was read.
func printRaw(raw any) string {
	switch v := raw.(type) {
	case nil:
		return "NULL"
	case []byte:
		return fmt.Sprintf("%q", v)
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(raw)
}
