package persistence

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// The names of the parts of a one-statement unit. A table of the same name could not
// be written to inside of it, so they are names nobody gives to a table.
const (
	partRow = "fsmgen_row" // the row as it was, locked; only where several sources need it
	partCAS = "fsmgen_cas" // the row as it is now
	partLog = "fsmgen_log" // its journal entry
)

// oneShapes are the texts of a transition that differ: with a version named, and
// with the key looked up in the same statement.
type oneShapes [2][2]atomic.Pointer[statement]

// oneText returns the statement of a transition, built at its first use.
func (t *table) oneText(i int, p *plan, named, keyed bool) *statement {
	slot := &t.ones[i][index(named)][index(keyed)]
	if st := slot.Load(); st != nil {
		return st
	}
	st := t.buildOne(p, named, keyed)
	slot.Store(&st)
	return &st
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// buildOne wraps the CAS of a plan so that it tells what it did and records it. The
// CAS keeps its own condition on the updated row; what is added can only make it
// match less. Its parameters come first, since they are numbered already.
func (t *table) buildOne(p *plan, named, keyed bool) statement {
	cas := &p.whole.any
	if named {
		cas = &p.whole.named
	}
	b := &builder{d: t.d, binds: slices.Clone(cas.binds)}
	if p.single >= 0 && !t.def.Journal.Enabled && !t.triggered {
		b.sql(cas.text)
		t.versionFits(b)
		t.returning(b, p)
		return b.statement()
	}
	b.sql("WITH ")
	if p.single < 0 {
		t.oldRow(b, p)
		b.sql(", ")
	}
	b.sql(partCAS, " AS (", cas.text)
	t.versionFits(b)
	if p.single < 0 {
		b.sql(" AND EXISTS (SELECT 1 FROM ", partRow, ")")
	}
	if keyed {
		t.keyUnseen(b.sql(" AND "), func(v *values) any { return v.call.Key })
	}
	t.returning(b, p)
	b.sql(")")
	if t.def.Journal.Enabled {
		t.logEdge(b, p)
	}
	var status bind
	if p.whole.target >= 0 {
		status = constant(t.def.States[p.whole.target].Value)
	}
	t.told(b.sql(" SELECT "), status)
	if p.single < 0 {
		b.sql(", o.was")
	}
	if p.whole.target < 0 {
		b.sql(", c.became")
	}
	t.fromParts(b, p)
	return b.statement()
}

// versionFits leaves out a version at the end of its column's range, and NULL: adding
// to the one raises, and the other has no successor.
func (t *table) versionFits(b *builder) {
	b.sql(" AND ").name(t.def.Table.Version).sql(" < ", strconv.FormatInt(t.maxVersion, 10))
}

// greatest is the greatest version that the column holds.
func (c Column) greatest() int64 {
	if c.Precision == 0 || c.Precision > 64 {
		return math.MaxInt64
	}
	return 1<<(c.Precision-1) - 1
}

// oldRow locks the row and tells its state before the update. The CAS depends on it,
// so it runs first and sees the latest version of the row, also after a wait: what it
// says is what the CAS then leaves.
func (t *table) oldRow(b *builder, p *plan) {
	b.sql(partRow, " AS (SELECT ").name(t.def.Table.Status.Name).sql(" AS was FROM ").table(t.def.Table.Name).sql(" WHERE ")
	t.whereID(b)
	b.sql(" AND ")
	t.statusIn(b, p.sources)
	b.sql(t.f.LockRead, ")")
}

// returning appends what a CAS tells: the new version, and the new state where the
// row decides it.
func (t *table) returning(b *builder, p *plan) {
	b.sql(" RETURNING ").name(t.def.Table.Version).sql(" AS v")
	if p.whole.target < 0 || t.triggered {
		b.sql(", ").name(t.def.Table.Status.Name).sql(" AS became")
	}
}

// fromParts names the parts a row of the answer, or of the journal, is made of.
func (t *table) fromParts(b *builder, p *plan) {
	b.sql(" FROM ", partCAS, " AS c")
	if p.single < 0 {
		b.sql(" CROSS JOIN ", partRow, " AS o")
	}
}

// keyUnseen appends the condition that the journal does not hold the key yet.
func (t *table) keyUnseen(b *builder, key bind) {
	b.sql("NOT EXISTS (SELECT 1 FROM ").table(t.def.Journal.Table).sql(" WHERE machine = ").param(constant(t.def.Name))
	b.sql(" AND entity_id = ").param(func(v *values) any { return v.entity })
	b.sql(" AND ").name("key").sql(" = ").param(key).sql(")")
}

// Positions in journalColumns of what the statement itself finds out.
const (
	logVersion = 2
	logFrom    = 4
	logTo      = 5
)

// logEdge appends the journal row of a transition.
func (t *table) logEdge(b *builder, p *plan) {
	t.logRow(b, func(i int) bool {
		switch {
		case i == logVersion:
			b.sql("c.v")
		case i == logFrom && p.single < 0:
			t.stateNameOf(b, "o.was", p.sources)
		case i == logTo && p.whole.target < 0:
			t.stateNameOf(b, "c.became", nil)
		default:
			return false
		}
		return true
	})
	t.fromParts(b, p)
	t.logged(b)
}

// logged ends the journal's INSERT.
func (t *table) logged(b *builder) {
	if t.logTriggered {
		b.sql(" RETURNING version")
	}
	b.sql(")")
}

// logRow appends the journal's INSERT; found writes the columns that are not bound.
func (t *table) logRow(b *builder, found func(i int) bool) {
	b.sql(", ", partLog, " AS (INSERT INTO ").table(t.def.Journal.Table).sql(" (").names(journalColumns).sql(") SELECT ")
	for i, f := range t.journalBinds() {
		if i > 0 {
			b.sql(", ")
		}
		if !found(i) {
			b.param(f)
		}
	}
}

// stateNameOf appends the name of the state a status stands for: rows hold values,
// the journal names. Where each value is its name there is nothing to translate.
func (t *table) stateNameOf(b *builder, status string, states []bool) {
	plain := t.def.Table.Status.Type == expr.String
	for i := range t.def.States {
		s := &t.def.States[i]
		if states == nil || states[i] {
			plain = plain && s.Value == s.Name && len(s.Aliases) == 0
		}
	}
	if plain {
		b.sql("CAST(", status, " AS text)")
		return
	}
	b.sql("CASE ", status)
	for i := range t.def.States {
		if states == nil || states[i] {
			t.whenState(b, &t.def.States[i])
		}
	}
	b.sql(" END")
}

func (t *table) whenState(b *builder, s *definitions.State) {
	for _, raw := range append([]any{s.Value}, s.Aliases...) {
		b.sql(" WHEN ").param(constant(raw)).sql(" THEN ").param(constant(s.Name))
	}
}

// stepOne is the unit of one transition where one statement does it all. keyed has the
// statement look for the key, so that a duplicate ends in no row instead of an error,
// which would cost the others of its batch a round. Inside a caller's transaction it
// would cost the transaction: there lock takes the row first, and with it the statement
// sees every entry of the row.
func (t *table) stepOne(x Execer, p *plan, v *values, lock, keyed bool) (engine.Change, error) {
	if lock {
		state, version, found, err := t.readState(x, v)
		if err != nil {
			return engine.Change{}, err
		}
		if !found || state < 0 || !p.sources[state] || (v.call.Version != engine.AnyVersion && v.call.Version != version) {
			return engine.Change{}, errMiss
		}
	}
	if v.call.Version >= t.maxVersion { // no row has it and goes on from there
		return engine.Change{}, errMiss
	}
	v.edge = edge{from: p.single, to: p.whole.target}
	if v.call.Version != engine.AnyVersion {
		v.edge.version = v.call.Version + 1
	}
	st := t.oneText(v.call.Transition, p, v.call.Version != engine.AnyVersion, keyed)
	var version, was, became any
	dest := []any{&version}
	if p.single < 0 {
		dest = append(dest, &was)
	}
	if p.whole.target < 0 {
		dest = append(dest, &became)
	}
	found, err := x.Query(st.text, st.args(v), dest)
	if err != nil {
		return engine.Change{}, t.meddledBy(err)
	}
	if !found {
		return engine.Change{}, errMiss
	}
	return t.changed(p, version, was, became)
}

var errVersionType = errors.New("the version column is no integer")

// changed reads the answer of a CAS that applied.
func (t *table) changed(p *plan, version, was, became any) (engine.Change, error) {
	c := engine.Change{OK: true, From: p.single, To: p.whole.target}
	var ok bool
	if c.Version, ok = version.(int64); !ok {
		return engine.Change{}, errVersionType
	}
	if p.single < 0 {
		c.From = t.stateOf(was)
	}
	if p.whole.target < 0 {
		c.To = t.stateOf(became)
	}
	return c, nil
}

// inCallers says what an error inside a caller's transaction means where one error
// ends the whole transaction: a key that another transaction recorded in this very
// moment cannot be looked up any more, the caller has to begin again. A statement that
// the server cancelled because the context ended carries the context's error too.
func (t *table) inCallers(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, errMiss) {
		return err
	}
	err = t.s.fault(t.inside(err), t.def.Journal.Table)
	var f *engine.Fault
	switch {
	case !errors.As(err, &f):
	case f.Class == engine.ClassDuplicateKey:
		return &engine.Fault{Class: engine.ClassRetryable, Err: f.Err, Hint: "another transaction has just recorded this key"}
	case f.Class == engine.ClassRetryable && ctx.Err() != nil:
		return &engine.Fault{Class: f.Class, Err: errors.Join(f.Err, ctx.Err()), Hint: f.Hint}
	}
	return err
}

// inside gives an error its class where that is another one inside a caller's transaction.
func (t *table) inside(err error) error {
	if d, ok := t.d.(Insider); ok {
		if f := d.Inside(err); f != nil {
			return f
		}
	}
	return err
}
