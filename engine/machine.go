package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
)

// Machine runs the transitions of one definition. It is safe for concurrent use.
type Machine struct {
	eng   *Engine
	rules *Rules
	table Table
	code  Code
	tx    Tx
	txErr error // why the transaction given to In cannot be used
}

// Definition returns what the machine was made from.
func (m *Machine) Definition() *definitions.Machine { return m.rules.def }

// In returns the machine bound to a transaction the caller holds. The engine
// then neither begins, commits nor retries, and touches nothing but tx. A pool
// (*sql.DB, *sqlx.DB) is refused: each call returns ErrInvalidArgs.
func (m *Machine) In(tx Tx) *Machine {
	bound := *m
	bound.tx, bound.txErr = tx, checkTx(tx)
	return &bound
}

// checkTx refuses what cannot hold a transaction open.
func checkTx(tx Tx) error {
	if v := reflect.ValueOf(tx); tx == nil || (v.Kind() == reflect.Pointer && v.IsNil()) {
		return errors.New("In(nil): give the open transaction")
	}
	if _, pool := tx.(interface{ SetMaxOpenConns(int) }); pool {
		return fmt.Errorf("In(%T): that is a pool, each statement would run on its own; give a *sql.Tx, *sqlx.Tx or *sql.Conn", tx)
	}
	return nil
}

// Entity is a row as the machine sees it.
type Entity struct {
	ID      string
	State   string
	Version int64
	// Values are the fields in the definition's order; nil for NULL.
	Values []any

	def *definitions.Machine
}

// Row returns the fields by name.
func (e Entity) Row() Row {
	row := make(Row, len(e.Values))
	for i, v := range e.Values {
		row[e.def.Fields[i].Name] = v
	}
	return row
}

// Get reads a row. ErrNotFound, ErrUnknownState and ErrInvalidArgs are its answers.
func (m *Machine) Get(ctx context.Context, id string) (Entity, error) {
	id, err := m.checkCall(ctx, "", opGet, id)
	if err != nil {
		return Entity{}, err
	}
	row, found, err := m.table.Get(ctx, m.tx, id)
	switch {
	case err != nil:
		return Entity{}, m.readError(ctx, "", opGet, id, err)
	case !found:
		return Entity{}, newError(ErrNotFound, Error{Machine: m.rules.def.Name, op: opGet, ID: id, Detail: "nothing has this id in table " + m.rules.def.Table.Name})
	case row.State < 0:
		return Entity{}, newError(ErrUnknownState, Error{
			Machine: m.rules.def.Name, op: opGet, ID: id, State: m.rules.stateOf(&row), Version: row.Version,
			Detail: fmt.Sprintf("row %q has status %s, which is none of the machine's states", id, printRaw(row.Raw)),
		})
	}
	if err := m.checkNulls(id, row); err != nil {
		return Entity{}, err
	}
	return Entity{ID: row.ID, State: m.rules.stateName(row.State), Version: row.Version, Values: row.Values, def: m.rules.def}, nil
}

// checkNulls: a field that is not nullable has no value for NULL, and must not read as
// an empty one.
func (m *Machine) checkNulls(id string, row RowState) error {
	for i, v := range row.Values {
		if f := &m.rules.def.Fields[i]; v == nil && !f.Nullable {
			return newError(nil, Error{
				Machine: m.rules.def.Name, op: opGet, ID: id, State: m.rules.stateName(row.State), Version: row.Version,
				Detail: fmt.Sprintf("column %s is NULL, and the definition says that field %s is never; say nullable: true, or fill the column", f.Column, f.Name),
			})
		}
	}
	return nil
}

// Journal returns what was applied to a row, in version order. It is empty for a
// row that was made elsewhere, and for a bare machine.
func (m *Machine) Journal(ctx context.Context, id string) ([]Entry, error) {
	id, err := m.checkCall(ctx, "", opJournal, id)
	if err != nil {
		return nil, err
	}
	if !m.rules.def.Journal.Enabled {
		return nil, nil
	}
	entries, err := m.table.Journal(ctx, m.tx, id)
	if err != nil {
		return nil, m.readError(ctx, "", opJournal, id, err)
	}
	return entries, nil
}

// Can returns nil if the call would succeed now, as a transition or as a
// duplicate, and else the error the call would give. It changes nothing and locks
// nothing, also inside a transaction: a moment later the answer may be another.
//
// A guard that the transition names is asked as the call would ask it, which is not for
// a duplicate; its no is ErrRejected. Effects and `after` hooks do not run.
func (m *Machine) Can(ctx context.Context, id, transition string, args Args) error {
	q, err := m.prepare(ctx, transition, id, nil, args, nil, true)
	if err != nil {
		return err
	}
	in := q.inquiry()
	in.Unlocked = true
	s, err := m.table.Inspect(ctx, m.tx, in)
	if err != nil {
		return m.readError(ctx, transition, "", id, err)
	}
	v := m.rules.classify(q, &s)
	switch {
	case v.err != nil:
		return v.err
	case !v.again: // a duplicate, which asks no guard
		return nil
	}
	event := m.event(q, &s)
	return m.guard(ctx, q, &s, &event)
}

// Can is [Machine.Can] for a row already read, without I/O, without the journal and
// without Go code: it knows neither keys nor history nor guards.
func (r *Rules) Can(transition, id, state string, version int64, fields, args []any) error {
	t, ok := r.byTransit[transition]
	if !ok {
		return newError(ErrInvalidArgs, Error{Machine: r.def.Name, Transition: transition, ID: id, Detail: "the definition has no such transition"})
	}
	s, ok := r.byName[state]
	if ok && r.transitions[t].sources[s] && r.transitions[t].byState {
		return nil
	}
	return r.canJudge(t, id, state, version, fields, args)
}

func (r *Rules) canJudge(t int, id, state string, version int64, fields, args []any) error {
	s, ok := r.byName[state]
	if !ok {
		s = -1
	}
	if err := r.transitions[t].coerceArgs(args); err != nil {
		return r.invalid(t, id, err)
	}
	q := newRequest(Call{ID: id, Version: AnyVersion, Transition: t, Args: args, Now: wallClock().UTC().Truncate(time.Microsecond)})
	v := r.classify(q, &Snapshot{Found: true, Row: RowState{ID: id, State: s, Raw: state, Version: version, Values: fields}})
	if v.err != nil {
		return v.err
	}
	return nil
}

func (r *Rules) invalid(transition int, id string, cause error) error {
	return newError(ErrInvalidArgs, Error{Machine: r.def.Name, Transition: r.def.Transitions[transition].Name, ID: id, Detail: cause.Error()})
}

func (r *Rules) invalidCreation(id string, cause error) error {
	return newError(ErrInvalidArgs, Error{Machine: r.def.Name, op: opCreate, ID: id, Detail: cause.Error()})
}

// checkCall does what every call needs first: a usable transaction, a legal id,
// a live context, and no transaction that the call would wait for for ever.
func (m *Machine) checkCall(ctx context.Context, transition, op, id string) (string, error) {
	fail := func(kind error, detail string, cause error) (string, error) {
		return id, newError(kind, Error{Machine: m.rules.def.Name, Transition: transition, op: op, ID: id, Detail: detail, cause: cause})
	}
	if m.txErr != nil {
		return fail(ErrInvalidArgs, m.txErr.Error(), nil)
	}
	if err := m.checkID(id); err != nil {
		return fail(ErrInvalidArgs, err.Error(), nil)
	}
	if err := ctx.Err(); err != nil {
		return id, err
	}
	if m.tx == nil && m.eng.store.Marked(ctx) {
		return fail(ErrBusy, "use In(tx): this call would wait for the transaction it is made in", errOpenTx)
	}
	canonical, err := m.table.CanonicalID(id)
	if err != nil {
		return fail(ErrInvalidArgs, err.Error(), nil)
	}
	return canonical, nil
}

func (m *Machine) checkID(id string) error {
	if id == "" {
		return errors.New("the id is empty")
	}
	if err := checkText("the id", id, maxID); err != nil {
		return err
	}
	if m.rules.idIsInt() {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != id {
			return fmt.Errorf("the id %q is not a decimal 64-bit integer", id)
		}
	}
	return nil
}

// Conflict is [ErrConflict] about the row as it was read, for generated handles: they
// find by themselves that the row has left the version they stand for. The transition is
// "" where they only read.
func (m *Machine) Conflict(transition, id, state string, version int64, detail string) error {
	e := Error{Machine: m.rules.def.Name, Transition: transition, op: opGet, ID: id, State: state, Version: version}
	if s, ok := m.rules.byName[state]; ok {
		e.Allowed = m.rules.allowed[s]
	}
	e.Detail = fmt.Sprintf("%s, and the row is %s at version %d", detail, state, version)
	return newError(ErrConflict, e)
}

// readError wraps an error of a read: nothing was written, so it is worth repeating
// where the database says so.
func (m *Machine) readError(ctx context.Context, transition, op, id string, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	detail, kind := unread(err, "reading failed")
	return newError(kind, Error{Machine: m.rules.def.Name, Transition: transition, op: op, ID: id, cause: err, Detail: detail})
}
