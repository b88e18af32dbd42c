package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/combine"
)

// group lets concurrent calls share a commit. Each call is the one statement it would
// be alone; a batch of them is a pipeline with one Sync, which the server runs as one
// transaction (https://www.postgresql.org/docs/current/protocol-flow.html, Pipelining).
// Nobody is answered before the batch has ended: only its end reports the commit.
type group struct {
	db       *sqlx.DB
	wait     time.Duration
	combiner *combine.Combiner[job] // nil: every call by itself
	slots    combine.Slots          // for calls that run alone
	foreign  atomic.Bool            // the pool's connections turned out to be wrapped: no pipeline
}

// job is one statement and where its first row goes.
type job struct {
	unit  persistence.Unit
	text  string
	args  []any
	dest  []any
	found *bool
}

// compare orders jobs by the rows they write.
func (j job) compare(other job) int {
	return cmp.Or(strings.Compare(j.unit.Table, other.unit.Table), strings.Compare(j.unit.ID, other.unit.ID))
}

type member = combine.Member[job]

// batchLimit is where larger batches stop paying.
const batchLimit = 64

// rowPatience is how long a batch waits for a row that somebody else has locked. What
// is locked then goes alone.
const (
	rowPatience = 20 * time.Millisecond
	hurry       = "20" // the same for the server
)

func newGroup(db *sqlx.DB, o *options) *group {
	g := &group{db: db, wait: o.wait, slots: combine.HalfOf(db.Stats().MaxOpenConnections)}
	if !o.single {
		g.combiner = combine.New(g, batchLimit, g.wait, rowPatience)
	}
	return g
}

// Unit gives fn an Execer whose statement runs in a batch.
func (g *group) Unit(ctx context.Context, u persistence.Unit, fn func(x persistence.Execer) error) error {
	return fn(groupExecer{g, ctx, u})
}

type groupExecer struct {
	g    *group
	ctx  context.Context //nolint:containedctx // it lives for one unit
	unit persistence.Unit
}

// Exec is for units of several statements, which have no place here.
func (x groupExecer) Exec(string, []any) (affected, lastID int64, err error) {
	return 0, 0, errors.New("postgres: BUG: a unit outside of a transaction is one query; please report it")
}

// Query runs the statement in a batch and reads its first row into dest.
func (x groupExecer) Query(text string, args, dest []any) (bool, error) {
	var found bool
	if x.g.combiner == nil || x.g.foreign.Load() {
		err := x.g.alone(x.ctx, job{x.unit, text, args, dest, &found})
		return found, err
	}
	if err := persistence.Share(x.ctx, x.g.combiner, job{x.unit, text, args, dest, &found}); err != nil {
		return false, err
	}
	return found, nil
}

// conn takes a connection. It is pinned, since database/sql repeats a statement given to
// the pool when its connection broke, although it may have run.
func (g *group) conn(ctx context.Context) (*sql.Conn, error) {
	return persistence.Connect(ctx, dialect{}, g.wait, g.db.Conn)
}

// turn is one batch on one connection.
type turn struct {
	g    *group
	conn *sql.Conn
}

// Open takes the connection of a batch.
func (g *group) Open(ctx context.Context) (combine.Session[job], error) {
	conn, err := g.conn(ctx)
	if err != nil {
		return nil, err
	}
	return &turn{g, conn}, nil
}

// Close gives the connection back.
func (t *turn) Close() { _ = t.conn.Close() }

// maxRounds is how often a batch from which an error was taken runs again together.
const maxRounds = 3

// Run executes a batch.
func (t *turn) Run(batch []*member) {
	switch {
	case len(batch) > 1:
		t.together(batch, "", 2)
	case t.g.slots.Try():
		defer t.g.slots.Give()
		batch[0].Err = t.g.query(batch[0].Ctx, t.conn, batch[0].Job)
	default: // as many wait for something locked as may: whoever needs nothing of it passes
		t.together(batch, "", 1)
	}
}

// together runs a batch in one transaction. A member's error takes the whole of it along,
// so the others run again without that member; after some rounds, or where fewer than
// least are left, everybody runs alone. table leaves out the others' tables.
func (t *turn) together(batch []*member, table string, least int) {
	for range maxRounds {
		members := present(batch, table)
		if len(members) < least {
			break
		}
		culprit, err := t.pipeline(batch, members)
		switch {
		case err == nil:
			return
		case errors.Is(err, errForeign): // nothing was sent
			t.apart(batch, members)
			return
		case culprit < 0 && !told(err): // the connection broke: nobody knows
			for _, i := range members {
				batch[i].Err = err
			}
			return
		case culprit < 0 && held(err) && table == "": // a table is locked
			for _, table := range tables(batch, members) {
				t.together(batch, table, 1)
			}
			return
		case culprit < 0: // the end of the batch failed, and does not say for whom
			t.apart(batch, members)
			return
		case held(err):
			t.apart(batch, []int{culprit})
		default:
			combine.Leave(batch, culprit, err)
		}
	}
	t.apart(batch, present(batch, table))
}

// tables lists those that members write to.
func tables(batch []*member, members []int) []string {
	var out []string
	for _, i := range members {
		if table := batch[i].Job.unit.Table; !slices.Contains(out, table) {
			out = append(out, table)
		}
	}
	return out
}

// present lists the members that have no answer yet, those of one table if it is named,
// in the order of their rows and, on one row, of their arrival.
func present(batch []*member, table string) []int {
	var out []int
	for i, m := range batch {
		if m != nil && (table == "" || m.Job.unit.Table == table) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return batch[a].Job.compare(batch[b].Job) })
	return out
}

// apart runs members alone, each on a connection of its own, in parallel.
func (t *turn) apart(batch []*member, members []int) {
	for _, i := range members {
		combine.Apart(batch, i, func(m *member) error {
			if err := t.g.slots.Take(m.Ctx, t.g.wait); err != nil {
				return persistence.Unsent(m.Ctx, err, persistence.RowHeld)
			}
			defer t.g.slots.Give()
			return t.g.alone(m.Ctx, m.Job)
		})
	}
}

// alone runs one statement on a connection of its own.
func (g *group) alone(ctx context.Context, j job) error {
	conn, err := g.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	return g.query(ctx, conn, j)
}

// proven tells a success from one after the context has ended, which proves nothing:
// the cancel request may have ended the commit's wait for its standby, and the server
// then reports success.
func proven(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &engine.Fault{Class: engine.ClassUnknown, Err: err, Hint: "the context ended while the commit was on its way"}
	}
	return nil
}

// query runs one statement by itself.
func (g *group) query(ctx context.Context, conn *sql.Conn, j job) error {
	*j.found = false // it may have been found in a round of a batch that was undone
	err := g.direct(ctx, conn, j)
	if errors.Is(err, errForeign) {
		switch err = conn.QueryRowContext(ctx, j.text, j.args...).Scan(j.dest...); {
		case errors.Is(err, sql.ErrNoRows):
			err = nil
		case err == nil:
			*j.found = true
		}
	}
	if err == nil && *j.found {
		err = proven(ctx)
	}
	if err != nil {
		*j.found = false
	}
	if waited(err) {
		return persistence.Waited(err, persistence.RowHeld)
	}
	return err
}

// errForeign says that the pool's connections are not the driver's own, but those of
// an instrumentation around it.
var errForeign = errors.New("the driver's connection is wrapped")

// own gives the driver's own connection, and remembers where there is none.
func (g *group) own(dc any) (*pgx.Conn, error) {
	if own, ok := dc.(*stdlib.Conn); ok {
		return own.Conn(), nil
	}
	g.foreign.Store(true)
	return nil, errForeign
}

// direct runs one statement past database/sql, which starts a goroutine for each that
// can be cancelled: a tenth of a call.
func (g *group) direct(ctx context.Context, conn *sql.Conn, j job) error {
	return conn.Raw(func(dc any) error {
		own, err := g.own(dc)
		if err != nil {
			return err
		}
		rows, err := own.Query(ctx, j.text, j.args...)
		if err != nil {
			return err
		}
		return readFirst(rows, j)
	})
}

// waited reports whether a statement has waited for its row for as long as it may.
func waited(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// told reports whether the server itself said what is wrong, and so that nothing was
// applied.
func told(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && dialect{}.Classify(err, "") != engine.ClassUnknown
}

// held reports whether a member only waited for a row that somebody else holds.
func held(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}

// pipeline sends the members' statements at once. culprit is the index of the member
// whose statement failed, or -1.
func (t *turn) pipeline(batch []*member, members []int) (culprit int, err error) {
	ctx, cancel := combine.Shared(batch, members, batchTimeout, 0)
	defer cancel()
	culprit = -1
	err = t.conn.Raw(func(dc any) error {
		own, err := t.g.own(dc)
		if err != nil {
			return err
		}
		send := &pgx.Batch{}
		send.Queue(hurryText, hurry, true)
		for _, i := range members {
			send.Queue(batch[i].Job.text, batch[i].Job.args...)
		}
		// Here the server commits before it answers the last statement, which must be
		// nobody's: an error of COMMIT is none of a member's.
		simple := own.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
		if simple {
			send.Queue("SELECT 1")
		}
		calm, err := hurried(ctx, own, send)
		if err != nil {
			return err
		}
		results := own.SendBatch(ctx, send)
		culprit, err = readAll(results, batch, members)
		if err == nil && simple {
			_, err = results.Exec()
		}
		if closing := results.Close(); err == nil { // else it says the same again
			err = closing
		}
		calm(err == nil)
		return err
	})
	if err == nil {
		err = proven(ctx)
	}
	return culprit, err
}

// hurryText sets for how long statements wait for a lock: in this transaction or, where
// its second parameter is false, from now on.
const hurryText = "SELECT set_config('lock_timeout', $1, $2)"

// hurried lets a connection not wait for long while the driver prepares what it has not
// sent on it before. That comes ahead of the batch and its own setting, and waits where
// somebody has locked a table. calm sets it back, with whether all of it went well.
func hurried(ctx context.Context, own *pgx.Conn, send *pgx.Batch) (calm func(well bool), _ error) {
	const key = "fsmgen.sent"
	const most = 1024 // more than a pool's connections keep
	sent, _ := own.PgConn().CustomData()[key].(map[string]bool)
	mode := own.Config().DefaultQueryExecMode
	if mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol { // nothing is prepared, and behind a pooler the session is not ours to set
		return func(bool) {}, nil
	}
	if !slices.ContainsFunc(send.QueuedQueries, func(q *pgx.QueuedQuery) bool { return !sent[q.SQL] }) {
		return func(bool) {}, nil
	}
	var before string
	if err := own.QueryRow(ctx, "SELECT current_setting('lock_timeout')").Scan(&before); err != nil {
		return nil, err
	}
	if _, err := own.Exec(ctx, hurryText, hurry, false); err != nil {
		return nil, err
	}
	return func(well bool) {
		if _, err := own.Exec(ctx, hurryText, before, false); err != nil {
			_ = own.Close(ctx) // nobody else is to be in a hurry
			return
		}
		if !well {
			return
		}
		if sent == nil || len(sent) > most {
			sent = map[string]bool{}
			own.PgConn().CustomData()[key] = sent
		}
		for _, q := range send.QueuedQueries {
			sent[q.SQL] = true
		}
	}, nil
}

// batchTimeout bounds a batch, whose members' own contexts do not.
const batchTimeout = 30 * time.Second

// readAll reads the answers of a pipeline in order.
func readAll(results pgx.BatchResults, batch []*member, members []int) (culprit int, err error) {
	if _, err := results.Exec(); err != nil {
		return -1, err
	}
	for _, i := range members {
		if err := readOne(results, batch[i].Job); err != nil {
			if !told(err) {
				return -1, err
			}
			return i, err
		}
	}
	return -1, nil
}

// readOne reads the answer of one statement of a pipeline.
func readOne(results pgx.BatchResults, j job) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	*j.found = false
	return readFirst(rows, j)
}

// readFirst reads the first row, in the types database/sql would give.
func readFirst(rows pgx.Rows, j job) error {
	defer rows.Close()
	if rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		for i, v := range values {
			*j.dest[i].(*any) = plain(v) //nolint:errcheck // what persistence gives to Query
		}
		*j.found = true
	}
	rows.Close()
	return rows.Err()
}

// plain turns the driver's own types into those of database/sql.
func plain(v any) any {
	switch v := v.(type) {
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	}
	return v
}
