package persistence

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/combine"
)

// judge lets concurrent calls share a commit where a statement cannot be pipelined
// (MySQL, MariaDB): one locking read of all rows, the decision in Go, which means the
// same as the CAS does, one UPDATE and one INSERT. A batch that meets an error leaves
// nothing behind, and each of its calls runs by itself.
type judge struct {
	s        *Store
	combiner *combine.Combiner[*judged]
	active   atomic.Int32  // calls on their way
	last     atomic.Int32  // how many members the last batch had
	waiting  sync.Map      // by heldRow: a call waits for it in the database
	slots    combine.Slots // for those that do
}

// judged is one call in a batch.
type judged struct {
	t      *table
	p      *plan
	v      *values
	alone  func(ctx context.Context) (engine.Change, error)
	change engine.Change

	miss           bool
	before, values []any // of the row, before and after the call

	held time.Time // when its row was first found locked by somebody else
}

type judgedMember = combine.Member[*judged]

const (
	judgeLimit = 64
	// judgePatience is how long a call that runs alone may hold up the others.
	judgePatience = 20 * time.Millisecond
	// judgeTimeout bounds a batch, whose members' own contexts do not.
	judgeTimeout = 30 * time.Second
	// judgeGrace is how much longer than they it may take: when it is stopped, nobody
	// knows what became of it.
	judgeGrace = 50 * time.Millisecond
	// worthwhile is how many calls make a batch pay. Fewer run side by side, each on a
	// connection of its own.
	worthwhile = 4
)

func newJudge(s *Store) *judge {
	j := &judge{s: s, slots: combine.HalfOf(s.db.Stats().MaxOpenConnections)}
	j.combiner = combine.New[*judged](j, judgeLimit, s.wait, judgePatience)
	return j
}

// apply runs a call in a batch, or by itself where few others are at work.
func (j *judge) apply(ctx context.Context, job *judged) (engine.Change, error) {
	defer j.active.Add(-1)
	if j.active.Add(1) < worthwhile && j.last.Load() < worthwhile && j.slots.Try() {
		defer j.slots.Give()
		return job.alone(ctx)
	}
	for {
		err := Share(ctx, j.combiner, job)
		switch {
		case err == nil:
			return job.change, nil
		case !errors.Is(err, errHeld):
			return engine.Change{}, err
		}
		if done, change, err := j.heldBy(ctx, job); done {
			return change, err
		}
	}
}

// errHeld is the answer of a batch for a row that somebody else has locked.
var errHeld = errors.New("another transaction holds the row, or its table")

// heldBy waits before a call looks again at a row that was locked. That is often locked
// by a call of our own that runs alone, and soon free: were all to run alone now, they
// would fight for the row and the next batch would find it locked again. So of those who
// have waited for long one at a time runs alone and waits for the row in the database.
func (j *judge) heldBy(ctx context.Context, job *judged) (done bool, _ engine.Change, err error) {
	if job.held.IsZero() {
		job.held = time.Now()
	}
	waited := time.Since(job.held)
	if waited > judgePatience {
		if change, err := j.waitFor(ctx, job); !errors.Is(err, errHeld) {
			return true, change, err
		}
	}
	if waited > j.s.wait {
		return true, engine.Change{}, Waited(errHeld, RowHeld)
	}
	pause := min(max(waited/4, time.Millisecond), judgePatience)
	select {
	case <-ctx.Done():
		return true, engine.Change{}, Unsent(ctx, errHeld, "")
	case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // jitter needs no secrecy
	}
	return false, engine.Change{}, nil
}

// waitFor runs a call alone, if nobody else waits for its row, and not too many for others.
func (j *judge) waitFor(ctx context.Context, job *judged) (engine.Change, error) {
	row := heldRow{job.t, job.v.call.ID}
	if _, taken := j.waiting.LoadOrStore(row, true); taken {
		return engine.Change{}, errHeld
	}
	defer j.waiting.Delete(row)
	if !j.slots.Try() {
		return engine.Change{}, errHeld
	}
	defer j.slots.Give()
	return job.alone(ctx)
}

// heldRow is a row for which a call waits in the database.
type heldRow struct {
	t  *table
	id string
}

// Open takes no connection yet: a call that runs by itself takes its own.
func (j *judge) Open(context.Context) (combine.Session[*judged], error) { return j, nil }

// Close has nothing to give back.
func (j *judge) Close() {}

// Run executes a batch.
func (j *judge) Run(batch []*judgedMember) {
	j.last.Store(int32(len(batch))) //nolint:gosec // at most judgeLimit
	if len(batch) == 1 && singly(batch, []int{0}) {
		if batch[0].Err = errHeld; j.slots.Try() {
			defer j.slots.Give()
			batch[0].Err = runAlone(batch[0])
		}
		return
	}
	for _, group := range byTable(batch) {
		if singly(batch, group) {
			j.apart(batch, group)
			continue
		}
		if err := j.together(batch, group); err != nil {
			j.failed(batch, group, err)
		}
	}
}

// singly reports whether calls of one table are better run each by itself: where they
// are few, and none of them has found its row locked, for which it would wait there.
func singly(batch []*judgedMember, group []int) bool {
	if slices.ContainsFunc(group, func(i int) bool { return !batch[i].Job.held.IsZero() }) {
		return false
	}
	return len(group) == 1 || (len(group) < worthwhile && !batch[group[0]].Job.t.def.Journal.Enabled)
}

func runAlone(m *judgedMember) error {
	var err error
	m.Job.change, err = m.Job.alone(m.Ctx)
	return err
}

func (j *judge) apart(batch []*judgedMember, group []int) {
	for _, i := range group {
		if batch[i] != nil {
			combine.Apart(batch, i, runAlone)
		}
	}
}

// failed: nothing of the group was applied, or nobody knows. Where the batch has waited
// for as long as it may, each by itself would wait as long again.
func (j *judge) failed(batch []*judgedMember, group []int, err error) {
	if batch[group[0]] != nil && batch[group[0]].Job.t.held(err) { // the table is locked
		for _, i := range group {
			if batch[i] != nil {
				batch[i].Err = errHeld
			}
		}
		return
	}
	if class := j.s.classify(err); class != engine.ClassUnknown && class != engine.ClassUnsent {
		j.apart(batch, group)
		return
	}
	for _, i := range group {
		if batch[i] != nil {
			batch[i].Err = j.s.fault(err, batch[i].Job.t.def.Journal.Table)
		}
	}
}

// byTable groups the members of a batch, in their order.
func byTable(batch []*judgedMember) [][]int {
	var out [][]int
	at := map[*table]int{}
	for i, m := range batch {
		n, ok := at[m.Job.t]
		if !ok {
			n = len(out)
			at[m.Job.t] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// together runs calls of one table in one transaction.
func (j *judge) together(batch []*judgedMember, group []int) error {
	ctx, cancel := combine.Shared(batch, group, judgeTimeout, judgeGrace)
	defer cancel()
	conn, err := j.s.conn(ctx)
	if err != nil {
		return err
	}
	tx := &judgeTx{s: j.s, ctx: ctx, conn: conn}
	defer tx.end()
	b := judgedBatch{t: batch[group[0]].Job.t, tx: tx}
	return b.run(batch, group)
}

// exact reports whether a machine's values can be written as they are: a type that the
// text of a statement does not carry exactly is left to the CAS.
func (t *table) exact() bool {
	return !slices.ContainsFunc(t.def.Fields, func(f definitions.Field) bool { return f.Type == expr.Float })
}
