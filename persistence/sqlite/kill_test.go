package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// The kill tests run a child under load, end it as kill -9 does, and hold what it had
// acknowledged against the database.

// killWorkers is how many calls the child has under way at once.
const killWorkers = 8

func init() {
	for _, mode := range []string{"bare", "journaled", "caller's transaction"} {
		children["killed: "+mode] = func(path string) error {
			text := lampText
			if mode == "bare" {
				text = bareText
			}
			eng, m, err := childMachine(path, text)
			if err != nil {
				return err
			}
			for w := range killWorkers {
				go killedWorker(eng, m, mode, fmtInt(w))
			}
			select {}
		}
	}
}

// killedWorker flips its row for ever and says each call before and after it.
func killedWorker(eng *engine.Engine, m *engine.Machine, mode, id string) {
	e, err := m.Get(context.Background(), id)
	for n := e.Version; err == nil; n++ {
		say("call %s %d", id, n)
		if err = killedCall(eng, m, mode, id, n); err == nil {
			say("done %s %d", id, n)
		}
	}
	say("failed %s: %v", id, err)
}

// killedCall is the n-th call on a row: it leads from version n to n+1.
func killedCall(eng *engine.Engine, m *engine.Machine, mode, id string, n int64) error {
	ctx := context.Background()
	transition := []string{"switch_off", "switch_on"}[n%2]
	var res engine.Result
	var err error
	switch mode {
	case "bare":
		res, err = m.Fire(ctx, transition, id, nil, engine.WithVersion(n))
	case "journaled":
		res, err = m.Fire(ctx, transition, id, nil, engine.WithKey(fmt.Sprint("k", n)))
	default:
		err = eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO ledger VALUES (?, ?)", id, n); err != nil {
				return err
			}
			res, err = m.In(tx).Fire(ctx, transition, id, nil, engine.WithKey(fmt.Sprint("k", n)))
			return err
		})
	}
	if err == nil && (res.Outcome != engine.Applied || res.Version != n+1) {
		err = fmt.Errorf("result %+v, want Applied at version %d", res, n+1)
	}
	return err
}

func TestKill(t *testing.T) {
	times := 3
	if *long {
		times = 20
	}
	for _, mode := range []string{"bare", "journaled", "caller's transaction"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.db")
			store := openAt(t, path)
			text := lampText
			if mode == "bare" {
				text = bareText
			}
			m := machineOn(t, store, text)
			mustExec(t, store.DB(), "CREATE TABLE ledger (id TEXT, n INTEGER, PRIMARY KEY (id, n))")
			for w := range killWorkers {
				mustCreate(t, m, fmtInt(w))
			}
			acknowledged := 0
			for i := range times {
				acknowledged += killOnce(t, store, m, mode, path, 40+30*i)
			}
			t.Logf("%s: killed %d times, %d calls acknowledged", mode, times, acknowledged)
		})
	}
}

// killOnce kills a child after so many acknowledged calls, and checks the database.
func killOnce(t *testing.T, store *persistence.Store, m *engine.Machine, mode, path string, after int) int {
	t.Helper()
	k := startChild(t, "killed: "+mode, path)
	begun, done := map[string]int64{}, map[string]int64{}
	total := 0
	hear := func() bool {
		line, ok := k.hear()
		if !ok {
			return false
		}
		var word, id string
		var n int64
		if _, err := fmt.Sscan(line, &word, &id, &n); err != nil || word == "failed" {
			t.Errorf("the child said %q", line)
			return false
		}
		if word == "call" {
			begun[id] = n
		} else {
			done[id] = n
			total++
		}
		return true
	}
	for total < after && hear() {
	}
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for hear() { // what it had said before it died
	}
	for id, n := range begun {
		checkKilled(t, store, m, mode, id, n, done[id])
	}
	return total
}

// checkKilled checks one row whose last call began at version begun, and whose last
// acknowledged call was done (0: none). An unanswered call is settled by repeating it.
func checkKilled(t *testing.T, store *persistence.Store, m *engine.Machine, mode, id string, begun, done int64) {
	t.Helper()
	ctx := context.Background()
	e, err := m.Get(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if e.Version < done+1 && done > 0 {
		t.Errorf("row %s is at version %d, but the call to version %d was acknowledged", id, e.Version, done+1)
	}
	if e.Version != begun && e.Version != begun+1 {
		t.Errorf("row %s is at version %d, the last call led from %d", id, e.Version, begun)
	}
	transition := []string{"switch_off", "switch_on"}[begun%2]
	var res engine.Result
	if mode == "bare" {
		res, err = m.Fire(ctx, transition, id, nil, engine.WithVersion(begun))
	} else {
		res, err = m.Fire(ctx, transition, id, nil, engine.WithKey(fmt.Sprint("k", begun)))
	}
	was := e.Version == begun+1
	if err != nil || res.Version != begun+1 || (res.Outcome == engine.Applied) == was {
		t.Errorf("row %s, version %d: repeating the call from %d gave %+v, %v", id, e.Version, begun, res, err)
	}
	if mode == "bare" {
		return
	}
	if mode != "journaled" && !was {
		mustExec(t, store.DB(), "INSERT INTO ledger VALUES (?, ?)", id, begun)
	}
	checkJournal(t, store.DB(), mode, id, begun+1)
}

// checkJournal: every version once, an unbroken chain that ends in the row, and the
// caller's own rows agree.
func checkJournal(t *testing.T, db *sqlx.DB, mode, id string, version int64) {
	t.Helper()
	var rows []struct {
		Version int64
		From    *string
		To      string
	}
	if err := db.Select(&rows, "SELECT version, from_state AS `from`, to_state AS `to` FROM fsm_journal WHERE entity_id = ? ORDER BY version", id); err != nil {
		t.Fatal(err)
	}
	if int64(len(rows)) != version {
		t.Errorf("row %s has %d entries at version %d", id, len(rows), version)
	}
	for i, r := range rows {
		if r.Version != int64(i+1) || (i > 0 && (r.From == nil || *r.From != rows[i-1].To)) {
			t.Errorf("row %s: entry %d is version %d from %v", id, i, r.Version, r.From)
		}
	}
	var row struct {
		Status  string
		Version int64
	}
	if err := db.Get(&row, "SELECT status, version FROM lamp WHERE id = ?", id); err != nil || row.Version != version || row.Status != rows[len(rows)-1].To {
		t.Errorf("row %s is %+v, %v, its last entry %+v", id, row, err, rows[len(rows)-1])
	}
	if strings.HasPrefix(mode, "caller") {
		var n int64
		if err := db.Get(&n, "SELECT count(*) FROM ledger WHERE id = ?", id); err != nil || n != version-1 {
			t.Errorf("row %s: %d ledger rows for %d transitions, %v", id, n, version-1, err)
		}
	}
}
