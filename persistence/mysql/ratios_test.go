package mysql

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

var ratios = flag.Bool("ratios", false, "measure the figures of the benchmarks as ratios to hand-written statements")

// round is a machine that goes round for ever, with a journal.
const round = `
machine: round
table: {name: rounds}
initial: a
states: {a: , b: }
transitions:
  there: {from: a, to: b}
  back:  {from: b, to: a}
  never: {from: b, to: b, key: required}
`

// bareRound is the same without.
const bareRound = `
machine: bare_round
table: {name: bare_rounds}
initial: a
states: {a: , b: }
transitions:
  there: {from: a, to: b}
  back:  {from: b, to: a}
journal: false
`

// bench is one store with what the measurements need.
type bench struct {
	journaled, bare *rig
	update, insert  *sql.Stmt
	serial          atomic.Int64
}

func newBench(t testing.TB, rows int, opts ...Option) *bench {
	cfg := servertest.MariaDBDatabase(t)
	b := &bench{journaled: openAt(t, cfg, round, append(opts, WithConnections(40))...)}
	b.bare = bind(t, cfg, b.journaled.store, bareRound)
	for i := 0; i < rows; i += 512 {
		var values []string
		for j := i; j < min(i+512, rows); j++ {
			values = append(values, "('"+rowID(j)+"', 'a', 1)")
		}
		for _, table := range []string{"rounds", "bare_rounds"} {
			b.journaled.exec(t, "INSERT INTO "+table+" VALUES "+strings.Join(values, ", "))
		}
	}
	db := b.journaled.store.DB()
	var err error
	b.update, err = db.PrepareContext(t.Context(), "UPDATE bare_rounds SET status = ?, version = version + 1 WHERE id = ? AND status = ? AND version = ?")
	check(t, err)
	t.Cleanup(func() { check(t, b.update.Close()) })
	b.insert, err = db.PrepareContext(t.Context(), "INSERT INTO fsm_journal (machine, entity_id, version, transition, from_state, to_state, args, `key`, fingerprint, attempt, actor, meta, topic, `at`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	check(t, err)
	t.Cleanup(func() { check(t, b.insert.Close()) })
	return b
}

// rowsEach is how many rows a worker has, so that none grows a journal such as no
// order ever has: a diagnosis reads back to the row's creation.
const rowsEach = 64

func rowID(i int) string { return fmt.Sprintf("row-%d", i) }

// place is where one worker's row stands; a shape moves it on.
type place struct {
	id, status string
	version    int64
}

func (p *place) step() (transition, to string) {
	if p.status == "a" {
		return "there", "b"
	}
	return "back", "a"
}

func (p *place) went(to string) { p.status, p.version = to, p.version+1 }

// shape is one way to move a row on.
type shape struct {
	name string
	bare bool
	move func(ctx context.Context, p *place) error
}

func (b *bench) hand(ctx context.Context, p *place) error {
	_, to := p.step()
	res, err := b.update.ExecContext(ctx, to, p.id, p.status, p.version)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n != 1 {
		return fmt.Errorf("%+v: touched %d rows", *p, n)
	}
	p.went(to)
	return nil
}

func (b *bench) handTx(ctx context.Context, p *place) error {
	tr, to := p.step()
	tx, err := b.journaled.store.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()                                                                       //nolint:errcheck // after Commit there is none
	res, err := tx.StmtContext(ctx, b.update).ExecContext(ctx, to, p.id, p.status, p.version) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n != 1 {
		return fmt.Errorf("%+v: touched %d rows", *p, n)
	}
	key := fmt.Sprintf("#%032d", b.serial.Add(1))
	if _, err := tx.StmtContext(ctx, b.insert).ExecContext(ctx, "hand", //nolint:sqlclosecheck // the transaction closes it
		p.id, b.serial.Load()<<20+p.version, tr, p.status, to, "{}", key,
		strings.Repeat("f", 64), key, nil, nil, nil, time.Now().UTC()); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	p.went(to)
	return nil
}

func fired(m *engine.Machine) func(ctx context.Context, p *place) error {
	return func(ctx context.Context, p *place) error {
		tr, to := p.step()
		res, err := m.Fire(ctx, tr, p.id, nil)
		if err != nil {
			return err
		}
		if res.Outcome != engine.Applied {
			return fmt.Errorf("%+v: %v", *p, res)
		}
		p.went(to)
		return nil
	}
}

// missed is a call that is not applied and has to be diagnosed.
func missed(m *engine.Machine) func(ctx context.Context, p *place) error {
	return func(ctx context.Context, p *place) error {
		tr := "back"
		if p.status == "b" {
			tr = "there"
		}
		res, err := m.Fire(ctx, tr, p.id, nil)
		if err == nil && !res.Outcome.Duplicate() {
			return fmt.Errorf("%s of %+v: %v", tr, *p, res)
		}
		return err
	}
}

func (b *bench) shapes() []shape {
	cancellable := func(move func(context.Context, *place) error) func(context.Context, *place) error {
		return func(ctx context.Context, p *place) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return move(ctx, p)
		}
	}
	return []shape{
		{"hand: UPDATE", true, b.hand},
		{"hand: BEGIN UPDATE INSERT COMMIT", true, b.handTx},
		{"bare", true, fired(b.bare.m)},
		{"journaled", false, fired(b.journaled.m)},
		{"journaled, miss", false, missed(b.journaled.m)},
		{"hand: UPDATE, deadline", true, cancellable(b.hand)},
		{"bare, deadline", true, cancellable(fired(b.bare.m))},
		{"journaled, deadline", false, cancellable(fired(b.journaled.m))},
	}
}

// TestRatios prints rates as ratios to the prepared UPDATE by hand, interleaved.
func TestRatios(t *testing.T) {
	if !*ratios {
		t.Skip("measures for a minute: give -ratios")
	}
	t.Run("each call alone", func(t *testing.T) { testRatios(t, WithoutGroupCommit()) })
	t.Run("sharing commits", func(t *testing.T) { testRatios(t) })
}

func testRatios(t *testing.T, opts ...Option) {
	b := newBench(t, 32*rowsEach, opts...)
	for _, callers := range []int{1, 8, 32} {
		rates := map[string][]float64{}
		for range rounds(5, 9) {
			for _, s := range b.shapes() {
				rates[s.name] = append(rates[s.name], b.rate(t, s, callers, 400*time.Millisecond))
			}
		}
		floor, tx := median(rates["hand: UPDATE"]), median(rates["hand: BEGIN UPDATE INSERT COMMIT"])
		for _, s := range b.shapes() {
			r := median(rates[s.name])
			t.Logf("%2d callers  %-34s %7.0f/s  F %.2f  T %.2f", callers, s.name, r, r/floor, r/tx)
		}
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

func (b *bench) places(t testing.TB, bare bool, n int) []place {
	r := b.journaled
	if bare {
		r = b.bare
	}
	rows, err := r.store.DB().QueryContext(t.Context(), "SELECT id, status, version FROM "+r.def.Table.Name)
	check(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err says it
	at := map[string]place{}
	for rows.Next() {
		var p place
		check(t, rows.Scan(&p.id, &p.status, &p.version))
		at[p.id] = p
	}
	check(t, rows.Err())
	out := make([]place, n)
	for i := range out {
		out[i] = at[rowID(i)]
	}
	return out
}

// rate is how often per second so many callers get a shape done, each on its row.
func (b *bench) rate(t testing.TB, s shape, callers int, d time.Duration) float64 {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	places := b.places(t, s.bare, callers*rowsEach)
	end := time.Now().Add(d)
	for own := range slices.Chunk(places, rowsEach) {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				if err := s.move(context.Background(), &own[i%rowsEach]); err != nil {
					t.Errorf("%s: %v", s.name, err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / d.Seconds()
}

// TestRatiosHotRow: many callers on one row, against as many hand-written UPDATEs.
func TestRatiosHotRow(t *testing.T) {
	if !*ratios {
		t.Skip("measures for a minute: give -ratios")
	}
	r := open(t, counter, WithConnections(40))
	r.create(t, "hot", nil)
	add := func(ctx context.Context) error {
		_, err := r.m.Fire(ctx, "add", "hot", engine.Args{"by": 1}, engine.WithKey(fmt.Sprint(time.Now().UnixNano(), &ctx)))
		return err
	}
	hand, err := r.store.DB().PrepareContext(t.Context(), "UPDATE counters SET n = n + 1 WHERE id = 'hot'")
	check(t, err)
	t.Cleanup(func() { check(t, hand.Close()) })
	shapes := map[string]func(ctx context.Context) error{
		"hand: UPDATE": func(ctx context.Context) error { _, err := hand.ExecContext(ctx); return err },
		"journaled":    add,
		"journaled, deadline": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return add(ctx)
		},
	}
	for _, callers := range []int{8, 32} {
		rates := map[string][]float64{}
		for range 5 {
			for name, f := range shapes {
				var n atomic.Int64
				var wg sync.WaitGroup
				end := time.Now().Add(400 * time.Millisecond)
				for range callers {
					wg.Go(func() {
						for time.Now().Before(end) {
							if err := f(context.Background()); err != nil {
								t.Errorf("%s: %v", name, err)
								return
							}
							n.Add(1)
						}
					})
				}
				wg.Wait()
				rates[name] = append(rates[name], float64(n.Load())/0.4)
			}
		}
		for name := range shapes {
			t.Logf("%2d callers on one row  %-20s %6.0f/s  F %.2f", callers, name, median(rates[name]), median(rates[name])/median(rates["hand: UPDATE"]))
		}
	}
}
