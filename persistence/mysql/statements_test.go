package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
)

// The statements of order.pay and the rest, as they must be: one for transaction, CAS,
// journal row and commit, one for the diagnosis of a miss.
const (
	journalColumns = "`machine`, `entity_id`, `version`, `transition`, `from_state`, `to_state`, `args`, `key`, `fingerprint`, `attempt`, `actor`, `meta`, `topic`, `at`"

	payCAS = "UPDATE `orders` SET `version` = CAST(LAST_INSERT_ID(`version` + 1) AS SIGNED), `status` = ?, `paid_at` = CAST(? AS DATETIME(6)), " +
		"`payment_ref` = CONVERT(CAST(? AS BINARY) USING utf8mb4) WHERE `id` = ? AND `status` = ?"
	fits     = " AND `version` < 9223372036854775807 AND (CHAR_LENGTH(CONVERT(CAST(? AS BINARY) USING utf8mb4)) <= 255) IS NOT FALSE"
	record   = "INSERT INTO `fsm_journal` (" + journalColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	recordIn = "INSERT INTO `fsm_journal` (" + journalColumns + ") VALUES (?, ?, fsmgen_v, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

	head  = "BEGIN NOT ATOMIC DECLARE fsmgen_v BIGINT; "
	begin = "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; "
	hit   = "; IF ROW_COUNT() = 1 THEN SET fsmgen_v = CAST(LAST_INSERT_ID() AS SIGNED); "
	end   = "; COMMIT; ELSE ROLLBACK; END IF; SELECT fsmgen_v; END"

	// pay waits for a held row: its caller cannot give up. payNow does not.
	pay    = head + begin + payCAS + fits + hit + recordIn + end
	payNow = head + begin + noWait + payCAS + fits + hit + noWait + recordIn + end

	cancelCAS = "UPDATE `orders` SET `version` = CAST(LAST_INSERT_ID(`version` + 1) AS SIGNED), `status` = ? WHERE `id` = ? AND (`status` = ? OR `status` = ?) AND `version` < 9223372036854775807"
	cancel    = head + "DECLARE fsmgen_from VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin; " + begin +
		noWait + "SELECT `status` INTO fsmgen_from FROM `orders` WHERE `id` = ? FOR UPDATE; " + noWait + cancelCAS + hit + noWait + "…"

	open1 = "BEGIN NOT ATOMIC SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; END"

	bare        = "UPDATE `lamps` SET `version` = CAST(LAST_INSERT_ID(`version` + 1) AS SIGNED), `status` = ? WHERE `id` = ? AND `status` = ?"
	inspect     = "SELECT r.`id`, r.`status`, r.`version`, …"
	snapshot    = "SELECT `id`, `status`, `version`, `paid_at`, `payment_ref` FROM `orders` WHERE `id` = ?"
	lockAll     = snapshot + " FOR UPDATE"
	lockStatus  = "SELECT `status`, `version` FROM `orders` WHERE `id` = ? FOR UPDATE"
	entriesRead = "SELECT n.kind, …"
	save        = "SAVEPOINT fsmgen_call"
	release     = "RELEASE SAVEPOINT fsmgen_call"
	rollbackTo  = "ROLLBACK TO SAVEPOINT fsmgen_call"
)

// same compares a recorded statement with a wanted one, in which … stands for the rest.
func same(got, want string) bool {
	if start, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(got, start)
	}
	return got == want
}

func wantStatements(t *testing.T, log *recorder.Log, want ...string) {
	t.Helper()
	got := log.Texts()
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("statements:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	log.Reset()
}

func TestStatements(t *testing.T) {
	r, log := recorded(t, order)
	ref := engine.Args{"payment_ref": "x"}
	fire := func(ctx context.Context, want error, outcome engine.Outcome, transition, id string, args engine.Args, opts ...engine.CallOption) {
		t.Helper()
		res, err := r.m.Fire(ctx, transition, id, args, opts...)
		if !errors.Is(err, want) || res.Outcome != outcome {
			t.Fatalf("%s %s: %v, %v; want %v, %v", transition, id, res.Outcome, err, outcome, want)
		}
	}
	for _, id := range []string{"o-1", "o-2", "o-3", "o-4", "o-5"} {
		r.create(t, id, nil)
	}
	log.Reset()
	ctx, forever := t.Context(), context.Background()

	fire(ctx, nil, engine.Applied, "pay", "o-1", ref)
	wantStatements(t, log, payNow)
	fire(forever, nil, engine.Applied, "pay", "o-5", ref)
	wantStatements(t, log, pay)
	fire(ctx, nil, engine.Applied, "pay", "o-2", ref, engine.WithKey("k"))
	wantStatements(t, log, payNow)
	fire(ctx, nil, engine.Applied, "pay", "o-3", ref, engine.WithVersion(1))
	wantStatements(t, log, strings.Replace(payNow, "`status` = ? AND", "`status` = ? AND `version` = ? AND", 1))
	fire(ctx, nil, engine.Applied, "cancel", "o-1", nil)
	wantStatements(t, log, cancel)
	fire(ctx, nil, engine.AlreadyReached, "pay", "o-3", ref)
	wantStatements(t, log, payNow, inspect)
	fire(ctx, nil, engine.Replayed, "pay", "o-2", ref, engine.WithKey("k"))
	wantStatements(t, log, payNow, inspect)
	fire(ctx, engine.ErrNotAllowed, 0, "ship", "o-4", nil)
	wantStatements(t, log, head+begin+noWait+"UPDATE …", inspect)
	fire(ctx, engine.ErrNotFound, 0, "pay", "nobody", ref)
	wantStatements(t, log, payNow, inspect)
	// A seen key for another transition: the row would fit, the index says no.
	fire(ctx, engine.ErrKeyReused, 0, "ship", "o-2", nil, engine.WithKey("k"))
	wantStatements(t, log, head+begin+noWait+"UPDATE …", inspect)
	r.whole(t)
}

// TestStatementsOnHeldRow: a caller who can give up waits in a transaction, which ends
// with its connection.
func TestStatementsOnHeldRow(t *testing.T) {
	r, log := recorded(t, order)
	r.create(t, "o-1", nil)
	tx, err := r.store.DB().BeginTx(t.Context(), nil)
	check(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE orders SET paid_at = NULL, payment_ref = 'held' WHERE id = 'o-1'")
	check(t, err)
	log.Reset()
	done := make(chan error, 1)
	go func() {
		_, err := r.m.Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "x"})
		done <- err
	}()
	time.Sleep(200 * time.Millisecond)
	check(t, tx.Commit())
	check(t, <-done)
	wantStatements(t, log, payNow, open1, payCAS+fits, "COMMIT", record, "COMMIT")
	r.whole(t)
}

func TestStatementsOfBareMachine(t *testing.T) {
	r, log := recorded(t, lamp)
	r.create(t, "l", nil)
	log.Reset()
	_, err := r.m.Fire(t.Context(), "switch_on", "l", nil)
	check(t, err)
	wantStatements(t, log, noWait+bare+" AND `version` < 9223372036854775807")
	res, err := r.m.Fire(context.Background(), "switch_off", "l", nil)
	check(t, err)
	if res.Version != 3 {
		t.Errorf("version %d, want 3", res.Version)
	}
	wantStatements(t, log, bare+" AND `version` < 9223372036854775807")
	_, err = r.m.Fire(t.Context(), "switch_off", "l", nil)
	check(t, err)
	wantStatements(t, log, noWait+bare+" AND `version` < 9223372036854775807", "SELECT r.`id`, …")
	_, err = r.m.Fire(t.Context(), "switch_on", "l", nil, engine.WithVersion(3))
	check(t, err)
	wantStatements(t, log, noWait+bare+" AND `version` = ? AND `version` < 9223372036854775807")
}

// TestStatementsWithTrigger: where a trigger can hide the version that the UPDATE
// wrote, the UPDATE does not stand alone; and what it made of the row is looked at.
func TestStatementsWithTrigger(t *testing.T) {
	r, log := recorded(t, lamp)
	r.create(t, "l", nil)
	r.exec(t, "CREATE TRIGGER watch AFTER UPDATE ON lamps FOR EACH ROW SET @watched = NEW.id")
	m := bound(t, r)
	log.Reset()
	_, err := m.Fire(t.Context(), "switch_on", "l", nil)
	check(t, err)
	asWritten := "IF NOT EXISTS (SELECT 1 FROM `lamps` WHERE `id` = ? AND `version` = fsmgen_v AND `status` = ?) THEN SIGNAL SQLSTATE '45000' " +
		"SET MESSAGE_TEXT = 'fsmgen: a trigger of the table''s own has written other status or version than the call to lamps'; END IF;"
	wantStatements(t, log, head+begin+noWait+bare+" AND `version` < 9223372036854775807"+hit+asWritten+" COMMIT"+strings.TrimPrefix(end, "; COMMIT"))
}

func TestStatementsInCallersTransaction(t *testing.T) {
	r, log := recorded(t, order)
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		r.create(t, id, nil)
	}
	ref := engine.Args{"payment_ref": "x"}
	in := func(want error, outcome engine.Outcome, transition, id string, args engine.Args, statements []string, opts ...engine.CallOption) {
		t.Helper()
		tx, err := r.store.DB().BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		check(t, err)
		log.Reset()
		res, err := r.m.In(tx).Fire(t.Context(), transition, id, args, opts...)
		if !errors.Is(err, want) || res.Outcome != outcome {
			t.Fatalf("%v, %v; want %v, %v", res.Outcome, err, outcome, want)
		}
		wantStatements(t, log, statements...)
		check(t, tx.Commit())
	}
	// First the row is locked, and the snapshot held against it: an own write would hide
	// that it is older.
	miss := []string{save, payCAS + fits, rollbackTo, release, snapshot, lockAll, entriesRead}
	in(nil, engine.Applied, "pay", "o-1", ref, []string{snapshot, lockAll, save, payCAS + fits, record, release})
	in(nil, engine.Applied, "pay", "o-2", ref, []string{snapshot, lockAll, save, payCAS + fits, record, release}, engine.WithKey("k"))
	in(nil, engine.AlreadyReached, "pay", "o-1", ref, append([]string{snapshot, lockAll}, miss...))
	in(nil, engine.Replayed, "pay", "o-2", ref, append([]string{snapshot, lockAll}, miss...), engine.WithKey("k"))
	in(nil, engine.Applied, "cancel", "o-3", nil, []string{snapshot, lockAll, save, lockStatus, strings.Replace(cancelCAS, " AND `version` <", " AND `version` = ? AND `version` <", 1), record, release})
	in(engine.ErrNotFound, 0, "pay", "nobody", ref, append([]string{snapshot}, miss...))
	r.whole(t)
}
