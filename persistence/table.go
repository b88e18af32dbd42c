package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

// table runs the calls of one machine.
type table struct {
	s     *Store
	d     Dialect
	f     Features
	rules *engine.Rules
	def   *definitions.Machine
	plans []atomic.Pointer[plan]
	// likeVariables: a column is called like a variable of a compound.
	likeVariables bool
	// triggered: a trigger of the table's own runs with the calls.
	triggered bool
	// logTriggered: a trigger can drop entries of the journal, and no count tells.
	logTriggered bool
	// deferrable: a constraint of the table's is held against rows at the end only.
	deferrable bool
	// judgeable: its calls may be decided in Go, see judge.
	judgeable bool
	// unstacked: calls on one row share no batch, since what the database does to a row
	// is not known in Go.
	unstacked atomic.Bool
	// fields say where the fields stand, with the widths the database gives them.
	fields []sqlexpr.Column
	// ones and createOnes are the texts where one statement is the whole unit.
	ones       []oneShapes
	createOnes [2]statement
	compounds  []compoundShapes
	// comparisons say how declared unique keys compare their columns, where not by bytes.
	comparisons [][]Comparison
	// columns are the table's, as the database has them.
	columns []Column
	// maxVersion is the greatest version that its column holds.
	maxVersion int64

	read, readLocked, state      statement
	exists, insert, takeLock     statement
	record, lastVersion, keySeen statement
	journal                      statement
	inspectCreation, entries     statement
	recent                       statement // where unions are dear
	twin                         statement // where unique keys are declared
}

// errMiss ends a unit in which nothing was to be written.
var errMiss = errors.New("the change matched nothing")

// CanonicalID gives the one spelling of id.
func (t *table) CanonicalID(id string) (string, error) {
	if d, ok := t.d.(IDSpeller); ok {
		return d.SpellID(t.columns[0], id)
	}
	return id, nil
}

// Apply sends the CAS, the journal row and the effect as one unit.
func (t *table) Apply(ctx context.Context, tx engine.Tx, call *engine.Call) (engine.Change, error) {
	if t.s.judge == nil || tx != nil || call.Effect != nil || !t.judgeable {
		return t.apply(ctx, tx, call)
	}
	return t.s.judge.apply(ctx, &judged{
		t: t, p: t.planOf(call.Transition), v: t.callValues(call),
		alone: func(ctx context.Context) (engine.Change, error) { return t.apply(ctx, nil, call) },
	})
}

// apply runs a call by itself.
func (t *table) apply(ctx context.Context, tx engine.Tx, call *engine.Call) (engine.Change, error) {
	p := t.planOf(call.Transition)
	a := application{
		t: t, p: p, v: t.callValues(call), inTx: tx != nil, waits: ctx.Done() == nil, keyed: call.Key != "" && !call.KeyOwn,
		plain: !t.def.Journal.Enabled && !t.triggered && (call.Version != engine.AnyVersion || t.f.VersionByInsertID) && p.single >= 0 && p.whole.target >= 0 && !p.whole.readsRow,
	}
	a.compound = t.compound(tx, call, p, a.plain)
	err := a.run(ctx, tx)
	if (a.compound || a.plain) && !a.waits && t.held(err) {
		a.plain, a.compound = false, false
		err = a.run(ctx, tx)
	}
	if err != nil { // a batch may still write to the change
		return engine.Change{}, t.taken(ctx, tx, call.ID, err)
	}
	return a.change, nil
}

// application is one call on its way through the database.
type application struct {
	t                  *table
	p                  *plan
	v                  *values
	inTx, waits, keyed bool
	plain, compound    bool
	change             engine.Change
}

func (a *application) run(ctx context.Context, tx engine.Tx) error {
	u := unit{id: a.v.call.ID, key: a.v.call.Key, plain: a.plain || a.compound}
	if effect := a.v.call.Effect; effect != nil {
		u.effect = func(ctx context.Context, tx engine.Tx) error { return effect(ctx, tx, a.change) }
	}
	return a.t.unit(ctx, tx, u, a.step)
}

func (a *application) step(x Execer) (err error) {
	switch t := a.t; {
	case t.f.OneStatement:
		a.change, err = t.stepOne(x, a.p, a.v, a.inTx && a.keyed, a.keyed && (a.inTx || t.s.pipelined))
	case a.compound:
		a.change, err = t.stepCompound(x, a.p, a.v, a.waits)
	default:
		a.change, err = t.step(x, a.p, a.v)
	}
	return err
}

// unit is what is atomic of one call.
type unit struct {
	id, key string
	plain   bool // a single statement, which needs no transaction
	creates bool
	effect  func(context.Context, engine.Tx) error
	failed  bool // the effect did
}

// run runs the effect.
func (u *unit) run(ctx context.Context, tx engine.Tx) error {
	err := u.effect(ctx, tx)
	u.failed = err != nil
	return err
}

// unit runs fn as one atomic unit: inside the caller's transaction, through the
// dialect's runner, or in a transaction of its own. errMiss is no error.
func (t *table) unit(ctx context.Context, tx engine.Tx, u unit, fn func(Execer) error) error {
	effect, since := u.effect, time.Now()
	var err error
	switch {
	case tx != nil && t.f.OneStatement:
		err = t.inCallers(ctx, t.within(ctx, tx, effect != nil, &u, fn))
	case tx != nil:
		if !u.creates {
			err = t.fresh(ctx, tx, u.id)
		}
		if err != nil {
			break
		}
		err = t.within(ctx, tx, t.def.Journal.Enabled || effect != nil, &u, fn)
	case t.s.runner != nil && effect == nil:
		err = t.s.runner.Unit(ctx, Unit{Table: t.def.Table.Name, ID: u.id, Plain: u.plain}, fn)
	default:
		err = t.s.Transact(ctx, func(ctx context.Context, tx engine.Tx) error {
			if err := fn(t.execer(ctx, tx)); err != nil || effect == nil {
				return t.s.uncommitted(err, t.def.Journal.Table)
			}
			return u.run(ctx, tx)
		})
		if u.failed {
			err = own(err)
		}
	}
	if (tx != nil || effect != nil) && !u.failed {
		err = t.waited(err, since)
	}
	if errors.Is(err, errMiss) {
		return nil
	}
	return t.s.fault(err, t.def.Journal.Table)
}

// within runs fn in the caller's transaction. guarded calls, which are more than one
// statement, stand in the engine's savepoint: whatever fails of them takes back the CAS,
// and nothing of the caller's, who may well go on and commit.
func (t *table) within(ctx context.Context, tx engine.Tx, guarded bool, u *unit, fn func(Execer) error) (err error) {
	x := t.execer(ctx, tx)
	if t.f.TakeLock {
		if _, _, err := x.Exec(t.takeLock.text, nil); err != nil {
			return err
		}
	}
	if !guarded && !t.f.TakeLock {
		return fn(x)
	}
	name := savepoint
	if u.effect != nil {
		own, give := effectPoints.take()
		defer give()
		name = own
	}
	if _, _, err := x.Exec("SAVEPOINT "+name, nil); err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // an error, or a panic of the effect
			err = t.rollbackTo(ctx, tx, name, u, err)
		}
	}()
	if err := fn(x); err != nil {
		done = t.gone(err) // then nothing more may be sent
		return err
	}
	if u.effect != nil {
		if err := u.run(context.WithValue(ctx, markKey{t.s}, true), tx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // past the deadline nothing may be applied
			return &engine.Fault{Class: engine.ClassRetryable, Err: err, Hint: "the context ended while the effect ran"}
		}
	}
	done = true
	if _, _, err = x.Exec("RELEASE SAVEPOINT "+name, nil); t.d.Lost(err) {
		return t.ended(x, u, err)
	}
	return err
}

// longWait tells a wait for a lock that ran into its limit from one that was refused.
const longWait = 500 * time.Millisecond

// waited tells of a transaction that one of its statements has waited for a lock for as
// long as it may. As long again, with all that the transaction holds, would not be better.
func (t *table) waited(err error, since time.Time) error {
	if err == nil || time.Since(since) < longWait || !t.d.LockWait(err) {
		return err
	}
	return Waited(err, "another transaction holds the row, or its table; roll back and repeat the whole")
}

// own is an effect's error that is no fault of the database's.
func own(err error) error {
	var f *engine.Fault
	if errors.As(err, &f) {
		return err
	}
	return &engine.Fault{Class: engine.ClassFatal, Err: err}
}

// step is the unit of one transition: what must be read, the CAS, the journal row.
func (t *table) step(x Execer, p *plan, v *values) (engine.Change, error) {
	from, named := p.single, v.call.Version
	if t.mustRead(p, named) {
		state, version, found, err := t.readState(x, v)
		if err != nil {
			return engine.Change{}, err
		}
		if !found || state < 0 || !p.sources[state] || (named != engine.AnyVersion && named != version) {
			return engine.Change{}, errMiss
		}
		from, named = state, version
	}
	u := p.updates[from]
	if u.readsRow {
		var err error
		if named, v.row, err = t.lockRow(x, v, from, named); err != nil {
			return engine.Change{}, err
		}
	}
	st := &u.any
	if named != engine.AnyVersion {
		st, v.edge.version = &u.named, named+1
	}
	affected, lastID, err := x.Exec(st.text, st.args(v))
	if err != nil {
		return engine.Change{}, err
	}
	if affected == 0 {
		return engine.Change{}, errMiss
	}
	v.edge.from, v.edge.to = from, u.target
	if err := t.learn(x, v, named == engine.AnyVersion, lastID); err != nil {
		return engine.Change{}, err
	}
	if err := t.asWritten(x, v, u.target); err != nil {
		return engine.Change{}, err
	}
	if t.def.Journal.Enabled {
		if err := t.insertOne(x, &t.record, v, t.def.Journal.Table); err != nil {
			return engine.Change{}, err
		}
	}
	return engine.Change{OK: true, From: v.edge.from, To: v.edge.to, Version: v.edge.version}, nil
}

// lockRow reads the row's values under its lock, for a CAS that binds them. A row that
// is not what the call needs is a miss.
func (t *table) lockRow(x Execer, v *values, state int, version int64) (int64, []any, error) {
	dest := t.rowDest()
	found, err := x.Query(t.readLocked.text, t.readLocked.args(v), dest)
	if err != nil || !found {
		return 0, nil, errors.Join(err, missIf(err == nil))
	}
	row, found, err := t.rowState(dest)
	if err != nil {
		return 0, nil, err
	}
	if !found || row.State != state || (version != engine.AnyVersion && version != row.Version) {
		return 0, nil, errMiss
	}
	return row.Version, row.Values, nil
}

// mustRead reports whether the row is read before the CAS. The CAS pins what was
// read, so a row that changed in between is a miss.
func (t *table) mustRead(p *plan, named int64) bool {
	return p.single < 0 || (t.f.ReadFirst && named == engine.AnyVersion)
}

func (t *table) readState(x Execer, v *values) (state int, version int64, found bool, err error) {
	v.dest = [2]any{&v.rawStatus, &v.rawVersion}
	found, err = x.Query(t.state.text, t.state.args(v), v.dest[:])
	if err != nil || !found {
		return -1, 0, found, err
	}
	n, ok := v.rawVersion.(int64)
	if !ok { // NULL or no integer: the inspection says so
		return -1, 0, true, nil
	}
	return t.stateOf(v.rawStatus), n, true, nil
}

// learn completes the edge with what the CAS alone did not tell.
func (t *table) learn(x Execer, v *values, unnamed bool, lastID int64) error {
	if unnamed {
		v.edge.version = lastID
	}
	if v.edge.to >= 0 && v.edge.version != 0 {
		return nil
	}
	state, version, _, err := t.readState(x, v)
	v.edge.to, v.edge.version = state, version
	return err
}

// Create inserts the row and its journal entry as one unit.
func (t *table) Create(ctx context.Context, tx engine.Tx, c *engine.Creation) (engine.Change, error) {
	v := t.values(c.ID)
	v.create = c
	var change engine.Change
	err := t.unit(ctx, tx, unit{id: c.ID, key: c.Key, creates: true}, func(x Execer) error {
		var err error
		if t.f.OneStatement {
			change, err = t.createOne(x, v)
			return err
		}
		change, err = t.createStep(x, v)
		return err
	})
	if err != nil { // as above
		return engine.Change{}, err
	}
	return change, nil
}

func (t *table) createStep(x Execer, v *values) (engine.Change, error) {
	var one any
	if t.def.Journal.Enabled && !v.create.KeyOwn {
		if seen, err := x.Query(t.keySeen.text, t.keySeen.args(v), []any{&one}); err != nil || seen {
			return engine.Change{}, errors.Join(err, missIf(seen))
		}
	}
	if exists, err := x.Query(t.exists.text, t.exists.args(v), []any{&one}); err != nil || exists {
		return engine.Change{}, errors.Join(err, missIf(exists))
	}
	v.edge = edge{from: -1, to: v.create.State, version: 1}
	if t.def.Journal.Enabled {
		var last any
		if _, err := x.Query(t.lastVersion.text, t.lastVersion.args(v), []any{&last}); err != nil {
			return engine.Change{}, err
		}
		if n, ok := last.(int64); ok {
			if n >= t.maxVersion {
				return engine.Change{}, t.spentBy(fmt.Errorf("the journal of this id ends at version %d", n))
			}
			v.edge.version = n + 1
		}
	}
	if err := t.insertOne(x, &t.insert, v, t.def.Table.Name); err != nil {
		return engine.Change{}, t.ranInto(x, v, err)
	}
	if err := t.asWritten(x, v, v.create.State); err != nil {
		return engine.Change{}, err
	}
	if t.def.Journal.Enabled {
		if err := t.insertOne(x, &t.record, v, t.def.Journal.Table); err != nil {
			return engine.Change{}, err
		}
	}
	return engine.Change{OK: true, From: -1, To: v.edge.to, Version: v.edge.version}, nil
}

// ranInto says what an INSERT that a constraint refused means: a row of the same id
// that appeared in the meantime is a miss, everything else is the user's own constraint.
// The row is read in share mode: the refused INSERTs of several losers hold shared
// locks on it already, and would wait for each other to lock it exclusively.
func (t *table) ranInto(x Execer, v *values, err error) error {
	if t.f.ShareRead == "" || t.s.classify(err) != engine.ClassConstraint {
		return err
	}
	var one any
	exists, readErr := x.Query(t.exists.text+t.f.ShareRead, t.exists.args(v), []any{&one})
	switch {
	case readErr != nil:
		return readErr
	case exists:
		return errMiss
	}
	return err
}

func missIf(miss bool) error {
	if miss {
		return errMiss
	}
	return nil
}
