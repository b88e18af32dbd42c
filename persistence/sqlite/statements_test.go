package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// recorded opens a store whose statements are recorded on their way to the driver.
func recorded(t *testing.T, params string) (*persistence.Store, *recorder.Log) {
	t.Helper()
	var log recorder.Log
	c, err := recorder.FromDriver(&sqlite3.SQLiteDriver{}, "file:"+filepath.Join(t.TempDir(), "x.db")+"?_journal_mode=WAL&_busy_timeout=0"+params, &log)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(c), "sqlite3")
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := sqlite.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return store, &log
}

// sent is what was recorded of a call, without the question for the caller's
// busy_timeout, and with one word for each of the longer statements.
func sent(log *recorder.Log) []string {
	var out []string
	for _, text := range log.Texts() {
		switch {
		case strings.HasPrefix(text, "PRAGMA busy_timeout"):
			continue
		case strings.Contains(text, "INTO `fsm_journal`"):
			text = "journal"
		case strings.Contains(text, "AS kind"):
			text = "inspect"
		case strings.HasPrefix(text, "UPDATE") && strings.HasSuffix(text, "WHERE 1 = 0"):
			text = "lock"
		case strings.HasPrefix(text, "UPDATE"):
			text = "cas"
		case strings.HasPrefix(text, "INSERT"):
			text = "insert"
		case strings.HasPrefix(text, "SELECT"):
			text = "read"
		}
		out = append(out, text)
	}
	return out
}

func wantSent(t *testing.T, log *recorder.Log, want string) {
	t.Helper()
	got := sent(log)
	if !slices.Equal(got, strings.Split(want, "; ")) {
		t.Errorf("sent %s\nwant %s", strings.Join(got, "; "), want)
	}
	log.Reset()
}

// The statements of each kind of call, exactly.
func TestStatements(t *testing.T) {
	t.Parallel()
	store, log := recorded(t, "")
	m, bare := machineOn(t, store, orderText), machineOn(t, store, bareText)
	ctx := context.Background()
	log.Reset()
	must := func(want string) func(_ engine.Result, err error) {
		return func(_ engine.Result, err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
			wantSent(t, log, want)
		}
	}
	pay := engine.Args{"payment_ref": "r"}
	must("BEGIN IMMEDIATE; read; read; insert; journal; COMMIT")(m.Create(ctx, engine.Row{"id": "o"}))
	must("BEGIN IMMEDIATE; read; read; read; insert; journal; COMMIT")(m.Create(ctx, engine.Row{"id": "p"}, engine.WithKey("k")))
	must("BEGIN IMMEDIATE; read; ROLLBACK; inspect")(m.Create(ctx, engine.Row{"id": "p"}))
	must("BEGIN IMMEDIATE; read; cas; journal; COMMIT")(m.Fire(ctx, "pay", "o", pay))
	must("BEGIN IMMEDIATE; cas; journal; COMMIT")(m.Fire(ctx, "pay", "p", pay, engine.WithVersion(1)))
	must("BEGIN IMMEDIATE; read; ROLLBACK; inspect")(m.Fire(ctx, "pay", "o", pay))
	must("BEGIN IMMEDIATE; cas; ROLLBACK; inspect")(m.Fire(ctx, "pay", "p", pay, engine.WithVersion(1)))
	must("BEGIN IMMEDIATE; read; cas; journal; COMMIT")(m.Fire(ctx, "cancel", "o", nil)) // several sources
	must("BEGIN IMMEDIATE; read; insert; COMMIT")(bare.Create(ctx, engine.Row{"id": "l"}))
	must("cas")(bare.Fire(ctx, "switch_on", "l", nil, engine.WithVersion(1)))
	must("BEGIN IMMEDIATE; read; cas; COMMIT")(bare.Fire(ctx, "switch_off", "l", nil))
	if _, err := m.Get(ctx, "o"); err != nil {
		t.Error(err)
	}
	wantSent(t, log, "read")

	tx := store.DB().MustBegin()
	log.Reset()
	must("lock; SAVEPOINT fsmgen_call; read; cas; journal; RELEASE SAVEPOINT fsmgen_call")(m.In(tx).Fire(ctx, "ship", "p", nil))
	must("lock; SAVEPOINT fsmgen_call; read; ROLLBACK TO SAVEPOINT fsmgen_call; RELEASE SAVEPOINT fsmgen_call; lock; inspect")(m.In(tx).Fire(ctx, "ship", "p", nil))
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// luno/workflow#153: status and version stand in the UPDATE's own WHERE, so that a
// change between the engine's last read and its write is not written over.
func TestConditionStandsOnTheUpdate(t *testing.T) {
	t.Parallel()
	store, log := recorded(t, "")
	m, bare := machineOn(t, store, orderText), machineOn(t, store, bareText)
	mustCreate(t, m, "o")
	mustCreate(t, bare, "l")
	log.Reset()
	mustFire(t, m, "cancel", "o", nil)
	mustFire(t, bare, "switch_on", "l", nil, engine.WithVersion(1))
	found := 0
	for _, text := range log.Texts() {
		if !strings.HasPrefix(text, "UPDATE") {
			continue
		}
		found++
		set, where, _ := strings.Cut(text, " WHERE ")
		for _, part := range []string{"`status` = ?", "`version` = ?", "`id` = ?"} {
			if !strings.Contains(where, part) {
				t.Errorf("the WHERE of %s lacks %s", text, part)
			}
		}
		if strings.Contains(text, "SELECT") || !strings.Contains(set, "`version` = `version` + 1") {
			t.Errorf("%s: want no sub-select, and the version raised", text)
		}
	}
	if found != 2 {
		t.Errorf("%d updates, want 2", found)
	}
}

// The same with the row changed exactly between: by another connection while the
// engine holds nothing yet, so its read or its write must find out.
func TestOvertakenBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	store, log := recorded(t, "")
	bare := machineOn(t, store, bareText)
	mustCreate(t, bare, "l")
	log.Inject(recorder.Fault{Before: recorder.Once(func(e recorder.Event) bool { return strings.HasPrefix(e.Text, "UPDATE") && e.Op == "exec" }, func(recorder.Event) error {
		log.Inject(recorder.Fault{})
		_, err := store.DB().Exec("UPDATE bare_lamp SET status = 'on', version = 2 WHERE id = 'l'")
		return err
	})})
	res, err := bare.Fire(context.Background(), "switch_on", "l", nil, engine.WithVersion(1))
	if err != nil || res.Outcome != engine.AlreadyReached || res.Version != 2 {
		t.Errorf("result %+v, error %v, want AlreadyReached at version 2", res, err)
	}
	mustExec(t, store.DB(), "UPDATE bare_lamp SET status = 'off', version = 6")
	if _, err := bare.Fire(context.Background(), "switch_on", "l", nil, engine.WithVersion(5)); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("error %v, want ErrConflict", err)
	}
}

// After any error only ROLLBACK is sent, and in a caller's transaction only ROLLBACK
// TO the engine's own savepoint. A COMMIT that readers hold up leaves the transaction open,
// and is sent again.
func TestAfterErrorOnlyRollback(t *testing.T) {
	t.Parallel()
	full := sqlite3.Error{Code: sqlite3.ErrFull}
	busy := sqlite3.Error{Code: sqlite3.ErrBusy}
	for _, where := range []string{"SELECT `status`", "UPDATE `orders` SET `status`", "INSERT INTO `fsm_journal`", "COMMIT", "SAVEPOINT", "RELEASE"} {
		for _, fault := range []error{full, busy} {
			for _, within := range []bool{false, true} {
				store, log := recorded(t, "")
				m := machineOn(t, store, orderText)
				mustCreate(t, m, "o")
				var tx *sqlx.Tx
				if within {
					tx = store.DB().MustBegin()
					m = m.In(tx)
				}
				log.Reset()
				failed := false
				log.Inject(recorder.Fault{Before: recorder.Once(func(e recorder.Event) bool {
					return e.Op != "prepare" && strings.HasPrefix(e.Text, where)
				}, func(recorder.Event) error { failed = true; return fault })})
				_, err := m.Fire(context.Background(), "pay", "o", engine.Args{"payment_ref": "r"})
				log.Inject(recorder.Fault{})
				if failed {
					wantOnlyRollback(t, log.Events(), within, errors.Is(fault, busy))
					if errors.Is(fault, full) && err == nil {
						t.Errorf("%s: no error", where)
					}
				}
				if tx != nil {
					_ = tx.Rollback()
				}
				if n := store.DB().Stats().InUse; n != 0 {
					t.Errorf("%s: %d connections in use", where, n)
				}
			}
		}
	}
}

// wantOnlyRollback looks at what follows the failed statement on its connection, up
// to the end of that try.
func wantOnlyRollback(t *testing.T, events []recorder.Event, within, gone bool) {
	t.Helper()
	at := slices.IndexFunc(events, func(e recorder.Event) bool { return e.Err != nil })
	if at < 0 {
		t.Fatalf("no statement failed in %v", events)
	}
	var after []string
	for _, e := range events[at+1:] {
		if e.Op == "prepare" || e.Conn != events[at].Conn || strings.HasPrefix(e.Text, "PRAGMA busy_timeout") {
			continue
		}
		if e.String() == "BEGIN IMMEDIATE" || strings.HasPrefix(e.String(), "SELECT r.") {
			break // the next try, or the diagnosis
		}
		after = append(after, e.String())
	}
	want := []string{"ROLLBACK"}
	switch {
	case within && (gone || strings.HasPrefix(events[at].Text, "SAVEPOINT")):
		want = nil // the caller rolls the whole back
	case gone && events[at].Text == "COMMIT":
		want = []string{"COMMIT"}
	case within:
		want = []string{"ROLLBACK TO SAVEPOINT fsmgen_call", "RELEASE SAVEPOINT fsmgen_call"}
	}
	if strings.HasPrefix(events[at].Text, "RELEASE") && within && len(after) == 0 {
		return
	}
	if !slices.Equal(after, want) {
		t.Errorf("within a transaction %v: after %s failed came %q, want %q", within, events[at], after, want)
	}
}
