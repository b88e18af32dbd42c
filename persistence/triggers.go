package persistence

import (
	"errors"
	"strings"

	"github.com/fsmgen/fsmgen/engine"
)

// What stands here is about triggers of the user's own, and conflict clauses, that have
// the database do something else than it was told, without an error: they drop a row, or
// write the status or the version again. The answer and the journal would be untrue, so
// such a call is taken back. On PostgreSQL only a BEFORE trigger is seen, whose work the
// statement returns.

// meddled begins what the server says where a statement finds such a trigger itself. No
// message of a database begins like it.
const meddled = "fsmgen: a trigger of the table's own "

// The ways.
const (
	skipped    = meddled + "or a conflict clause has dropped the row of "
	redirected = meddled + "has written other status or version than the call to "
)

// insertOne runs an INSERT and wants the row to be in the table.
func (t *table) insertOne(x Execer, st *statement, v *values, into string) error {
	affected, _, err := x.Exec(st.text, st.args(v))
	if err != nil || affected == 1 {
		return err
	}
	return meddling(skipped + into)
}

// asWritten wants the row to be as the call has just written it, where a trigger could
// have written to it too. target is the state that it was to reach, -1 where the row has
// decided that.
func (t *table) asWritten(x Execer, v *values, target int) error {
	if !t.triggered {
		return nil
	}
	if target >= 0 && v.edge.to != target { // it was read already
		return meddling(redirected + t.def.Table.Name)
	}
	state, version, found, err := t.readState(x, v)
	if err != nil || (found && state == v.edge.to && version == v.edge.version) {
		return err
	}
	return meddling(redirected + t.def.Table.Name)
}

func meddling(what string) error {
	return &engine.Fault{Class: engine.ClassConstraint, Err: errors.New(strings.TrimPrefix(what, "fsmgen: "))}
}

// meddledBy tells such an error of the server from others.
func (t *table) meddledBy(err error) error {
	if err == nil || !strings.Contains(err.Error(), meddled) {
		return err
	}
	return &engine.Fault{Class: engine.ClassConstraint, Err: err}
}

// told appends the new version for the answer of one statement; or an error, where the
// status is not the one that was written, if that is known, or the entry was dropped.
func (t *table) told(b *builder, status bind) {
	state := t.triggered && status != nil
	if !state && !t.logTriggered {
		b.sql("c.v")
		return
	}
	b.sql("CASE")
	raise := func(what string) {
		b.sql(" THEN CAST(", t.d.Literal(what+", version "), " || c.v AS bigint)")
	}
	if state {
		b.sql(" WHEN c.became <> ").param(status)
		raise(redirected + t.def.Table.Name)
	}
	if t.logTriggered {
		b.sql(" WHEN NOT EXISTS (SELECT 1 FROM ", partLog, ")")
		raise(skipped + t.def.Journal.Table)
	}
	b.sql(" ELSE c.v END")
}

// signal appends, to a compound, the error of a row that is not as the conditions that
// follow say.
func signal(b *builder, what string) {
	b.sql(" THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = ", b.d.Literal(what), "; END IF; ")
}
