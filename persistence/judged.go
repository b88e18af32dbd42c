package persistence

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/combine"
)

// judgedBatch is one transaction of a batch.
type judgedBatch struct {
	t    *table
	tx   *judgeTx
	rows map[string]*engine.RowState
	held map[string]bool // rows that somebody else has locked
	seen map[string]bool // keys the journal holds, by row
}

// run reads, decides and writes. Members whose row somebody else holds are told so, and
// come again; those whose row is not there run apart.
func (b *judgedBatch) run(batch []*judgedMember, group []int) error {
	queries := []reading{b.lock(batch, group)}
	if keys, asked := b.keys(batch, group); asked {
		queries = append(queries, keys)
	}
	if err := b.tx.read(queries...); err != nil {
		return err
	}
	if missing := b.missing(batch, group); len(missing) > 0 {
		if err := b.tx.read(b.findHeld(batch, missing)); err != nil {
			return err
		}
	}
	layers := b.decide(batch, group)
	if len(layers) == 0 {
		return nil
	}
	var err error
	if b.t.f.Compound {
		err = b.writeAtOnce(layers)
	} else {
		err = b.write(layers)
	}
	if errors.Is(err, errOtherwise) {
		b.t.unstacked.Store(true)
	}
	return err
}

// errOtherwise says that a row is not as the calls before leave it in memory: a trigger
// has written to it, or a column that the database computes. Calls on one row then share
// no batch of this table any more.
var errOtherwise = errors.New("a row in a shared commit is not as the calls before it left it")

// lock reads the rows under their locks, in the order of their ids, so that batches of
// several processes cannot wait for each other in a circle. A row that is held by
// somebody else is skipped.
func (b *judgedBatch) lock(batch []*judgedMember, group []int) reading {
	t := b.t
	b.rows = map[string]*engine.RowState{}
	q := &builder{d: t.d}
	q.sql("SELECT ")
	t.rowColumns(q, "")
	q.sql(" FROM ").table(t.def.Table.Name).sql(" WHERE ").name(t.def.Table.ID.Name).sql(" IN (")
	args := idList(q, batch, group)
	q.sql(") ORDER BY ").name(t.def.Table.ID.Name).sql(t.f.LockRead, " SKIP LOCKED")
	return reading{q: q, args: args, row: func(rows *sql.Rows) error {
		dest := t.rowDest()
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		row, found, err := t.rowState(dest)
		if found {
			b.rows[row.ID] = &row
		}
		return err
	}}
}

// missing are the members whose row was not read.
func (b *judgedBatch) missing(batch []*judgedMember, group []int) []int {
	return slices.DeleteFunc(slices.Clone(group), func(i int) bool { return b.rows[batch[i].Job.v.call.ID] != nil })
}

// findHeld tells rows that somebody else has locked from those that are not there.
func (b *judgedBatch) findHeld(batch []*judgedMember, missing []int) reading {
	b.held = map[string]bool{}
	q := &builder{d: b.t.d}
	q.sql("SELECT ").name(b.t.def.Table.ID.Name).sql(" FROM ").table(b.t.def.Table.Name).sql(" WHERE ").name(b.t.def.Table.ID.Name).sql(" IN (")
	args := idList(q, batch, missing)
	return reading{q: q.sql(")"), args: args, row: func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		b.held[id] = true
		return err
	}}
}

// idList appends a placeholder per member's id.
func idList(q *builder, batch []*judgedMember, group []int) []any {
	var args []any
	for n, i := range group {
		if n > 0 {
			q.sql(", ")
		}
		q.param(nil)
		args = append(args, batch[i].Job.v.id)
	}
	return args
}

// keys finds out which callers' keys the journal holds already. It is asked only where
// there are any.
func (b *judgedBatch) keys(batch []*judgedMember, group []int) (_ reading, asked bool) {
	b.seen = map[string]bool{}
	q := &builder{d: b.t.d}
	q.sql("SELECT entity_id, ").name("key").sql(" FROM ").table(b.t.def.Journal.Table).sql(" WHERE machine = ").param(nil).sql(" AND (")
	args := []any{b.t.def.Name}
	for _, i := range group {
		call := batch[i].Job.v.call
		if call.Key == "" || call.KeyOwn {
			continue
		}
		if len(args) > 1 {
			q.sql(" OR ")
		}
		q.sql("(entity_id = ").param(nil).sql(" AND ").name("key").sql(" = ").param(nil).sql(")")
		args = append(args, call.ID, call.Key)
	}
	return reading{q: q.sql(")"), args: args, row: func(rows *sql.Rows) error {
		var entity, key string
		err := rows.Scan(&entity, &key)
		b.seen[entity+"\x00"+key] = true
		return err
	}}, len(args) > 1
}

// decide judges each member against its row as the members before it leave it. It
// gives the writes in layers, in each of which a row stands once.
func (b *judgedBatch) decide(batch []*judgedMember, group []int) [][]*judged {
	var layers [][]*judged
	depth := map[string]int{}
	var strangers []int
	for _, i := range group {
		m := batch[i]
		row := b.rows[m.Job.v.call.ID]
		if row == nil {
			strangers = append(strangers, i)
			continue
		}
		if depth[row.ID] > 0 && b.t.unstacked.Load() {
			combine.Leave(batch, i, errHeld) // by a call of its own batch
			continue
		}
		m.Err = b.judge(m.Job, row)
		if m.Err != nil || m.Job.miss {
			continue
		}
		n := depth[row.ID]
		depth[row.ID]++
		if n == len(layers) {
			layers = append(layers, nil)
		}
		layers[n] = append(layers[n], m.Job)
	}
	for _, i := range strangers {
		if b.held[batch[i].Job.v.call.ID] {
			combine.Leave(batch, i, errHeld)
		} else {
			combine.Apart(batch, i, runAlone)
		}
	}
	return layers
}

// judge decides one call in Go and moves the row on in memory.
func (b *judgedBatch) judge(job *judged, row *engine.RowState) error {
	call, key := job.v.call, job.v.call.ID+"\x00"+job.v.call.Key
	job.miss, job.change = true, engine.Change{} // it may come from a batch that was undone
	if call.Key != "" && !call.KeyOwn && b.seen[key] {
		return &engine.Fault{Class: engine.ClassDuplicateKey, Err: errors.New("the journal holds the key")}
	}
	if row.State < 0 || row.Version >= b.t.maxVersion || !job.p.sources[row.State] || (call.Version != engine.AnyVersion && call.Version != row.Version) {
		return nil
	}
	in := b.t.rules.Input(call.Transition, row.Values, call.Args, call.Now)
	move, target, err := b.t.rules.Target(call.Transition, row.State, in)
	if err != nil || target < 0 {
		return nil //nolint:nilerr // a miss, which is diagnosed like every other
	}
	after, err := b.t.rules.Assign(call.Transition, move, in, row.Values)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	job.miss, job.before, job.values = false, row.Values, after
	job.v.edge = edge{from: row.State, to: target, version: row.Version + 1}
	job.change = engine.Change{OK: true, From: row.State, To: target, Version: row.Version + 1}
	row.State, row.Version, row.Values = target, row.Version+1, after
	b.seen[key] = true
	return nil
}

// write sends an UPDATE per layer, one INSERT, and COMMIT.
func (b *judgedBatch) write(layers [][]*judged) error {
	for n, layer := range layers {
		q := &builder{d: b.t.d}
		args := b.update(q, layer, n > 0)
		res, err := b.tx.exec(q.b.String(), args)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != int64(len(layer)) {
			return errors.Join(fmt.Errorf("%w: %d of %d changed", errOtherwise, n, len(layer)), err)
		}
	}
	if b.t.def.Journal.Enabled {
		q := &builder{d: b.t.d}
		args := b.record(q, slices.Concat(layers...))
		if _, err := b.tx.exec(q.b.String(), args); err != nil {
			return err
		}
	}
	return b.tx.commit()
}

// writeAtOnce does the same in one round trip. Calls on one row are as many layers:
// what stands between them must be written too, for the table's triggers and checks.
func (b *judgedBatch) writeAtOnce(layers [][]*judged) error {
	q := &builder{d: b.t.d}
	q.sql("BEGIN NOT ATOMIC ")
	var args []any
	for n, layer := range layers {
		rows := strconv.Itoa(len(layer))
		args = append(args, b.update(q, layer, n > 0)...)
		signal(q.sql("; IF ROW_COUNT() <> ", rows), signalOtherwise)
		if b.t.triggered {
			q.sql("IF (SELECT COUNT(*) FROM ").table(b.t.def.Table.Name).sql(" WHERE ")
			args = append(args, b.asWritten(q, layer)...)
			signal(q.sql(") <> ", rows), signalOtherwise)
		}
	}
	if b.t.def.Journal.Enabled {
		args = append(args, b.record(q, slices.Concat(layers...))...)
		q.sql("; ")
	}
	err := b.tx.finish(q.sql("COMMIT; END").b.String(), args)
	if err != nil && strings.Contains(err.Error(), signalOtherwise) {
		err = fmt.Errorf("%w: %w", errOtherwise, err)
	}
	return err
}

// signalOtherwise is errOtherwise as the server raises it.
const signalOtherwise = "fsmgen: a row is not as it was left"

// update appends the UPDATE of one layer: status and version of each row, and the
// fields its transitions assign. On the first layer the rows are as they were read; on
// those above it they have to be as the calls before left them, which were judged in
// memory.
func (b *judgedBatch) update(q *builder, layer []*judged, above bool) []any {
	t := b.t
	var args []any
	version := t.d.Quote(t.def.Table.Version)
	q.sql("UPDATE ").table(t.def.Table.Name).sql(" SET ", version, " = ", version, " + 1, ")
	every := func(*judged) bool { return true }
	args = append(args, b.cases(q, t.def.Table.Status.Name, layer, every, func(j *judged) any { return t.def.States[j.v.edge.to].Value })...)
	for f := range t.def.Fields {
		does := func(j *judged) bool { return writes(j.p, t.def.Fields[f].Name) }
		if slices.ContainsFunc(layer, does) {
			q.sql(", ")
			args = append(args, b.cases(q, t.def.Fields[f].Column, layer, does, func(j *judged) any { return bindValue(j.values[f]) })...)
		}
	}
	q.sql(" WHERE ")
	if above {
		return append(args, b.asLeft(q, layer)...)
	}
	q.name(t.def.Table.ID.Name).sql(" IN (")
	for n, j := range layer {
		if n > 0 {
			q.sql(", ")
		}
		q.param(nil)
		args = append(args, j.v.id)
	}
	q.sql(")")
	return args
}

// asLeft appends the condition that each row of a layer is as it was judged.
func (b *judgedBatch) asLeft(q *builder, layer []*judged) []any {
	t := b.t
	var args []any
	same := func(column, operator string, value any) {
		q.name(column).sql(operator).param(nil)
		args = append(args, value)
	}
	for n, j := range layer {
		if n > 0 {
			q.sql(" OR ")
		}
		q.sql("(")
		same(t.def.Table.ID.Name, " = ", j.v.id)
		q.sql(" AND ")
		same(t.def.Table.Version, " = ", j.v.edge.version-1)
		q.sql(" AND ")
		same(t.def.Table.Status.Name, " = ", t.def.States[j.v.edge.from].Value)
		for f := range t.def.Fields {
			q.sql(" AND ")
			same(t.def.Fields[f].Column, " <=> ", bindValue(j.before[f]))
		}
		q.sql(")")
	}
	return args
}

// asWritten appends the condition that each row of a layer has the status and the version
// that were written.
func (b *judgedBatch) asWritten(q *builder, layer []*judged) []any {
	var args []any
	for n, j := range layer {
		if n > 0 {
			q.sql(" OR ")
		}
		q.sql("(").name(b.t.def.Table.ID.Name).sql(" = ").param(nil)
		q.sql(" AND ").name(b.t.def.Table.Version).sql(" = ").param(nil)
		q.sql(" AND ").name(b.t.def.Table.Status.Name).sql(" = ").param(nil).sql(")")
		args = append(args, j.v.id, j.v.edge.version, b.t.def.States[j.v.edge.to].Value)
	}
	return args
}

// writes reports whether a transition assigns a field.
func writes(p *plan, field string) bool {
	for i := range p.def.Moves {
		for _, a := range assignments(p.def, &p.def.Moves[i]) {
			if a.Field == field {
				return true
			}
		}
	}
	return false
}

// cases appends one column's assignment: a value for all rows, or one per row. The
// values are those of the rows after the calls, so the order of assignments does not
// matter. A row whose transition does not write the column keeps what it has.
func (b *judgedBatch) cases(q *builder, column string, layer []*judged, writes func(*judged) bool, value func(*judged) any) []any {
	q.name(column).sql(" = ")
	if v, same := common(layer, writes, value); same {
		q.param(nil)
		return []any{v}
	}
	var args []any
	q.sql("CASE ").name(b.t.def.Table.ID.Name)
	for _, j := range layer {
		if writes(j) {
			q.sql(" WHEN ").param(nil).sql(" THEN ").param(nil)
			args = append(args, j.v.id, value(j))
		}
	}
	q.sql(" ELSE ").name(column).sql(" END")
	return args
}

// common gives the value that all rows of a layer are to have, if there is one.
func common(layer []*judged, writes func(*judged) bool, value func(*judged) any) (v any, same bool) {
	v = value(layer[0])
	for _, j := range layer {
		if _, bytes := value(j).([]byte); bytes || !writes(j) || value(j) != v {
			return nil, false
		}
	}
	return v, true
}

// record appends the INSERT of all journal rows.
func (b *judgedBatch) record(q *builder, all []*judged) []any {
	binds := b.t.journalBinds()
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(binds)), ", ") + ")"
	q.sql("INSERT INTO ").table(b.t.def.Journal.Table).sql(" (").names(journalColumns).sql(") VALUES ")
	args := make([]any, 0, len(binds)*len(all))
	for n, j := range all {
		if n > 0 {
			q.sql(", ")
		}
		q.sql(row)
		for _, f := range binds {
			args = append(args, f(j.v))
		}
	}
	return args
}
