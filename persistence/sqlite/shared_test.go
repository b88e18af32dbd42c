package sqlite_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// Two machines over one table, each with its own status column and both with the
// one version (solidus' return items).
const (
	receptionText = `
machine: reception
table: {name: items, status: reception}
initial: awaiting
states: {awaiting: , received: {final: true}, lost: {final: true}}
transitions:
  receive: {from: awaiting, to: received}
  lose:    {from: awaiting, to: lost}
`
	acceptanceText = `
machine: acceptance
table: {name: items, status: acceptance}
initial: pending
states: {pending: , accepted: {final: true}, rejected: {final: true}}
transitions:
  accept: {from: pending, to: accepted}
  reject: {from: pending, to: rejected}
`
)

func TestTwoMachinesOnOneTable(t *testing.T) {
	t.Parallel()
	store := open(t)
	owner, guest := define(t, receptionText), define(t, acceptanceText)
	if err := store.Migrate(context.Background(), owner, guest); err != nil {
		t.Fatal(err)
	}
	reception, acceptance := bind(t, store, owner), bind(t, store, guest)
	for i := range 20 {
		id := fmtInt(i)
		mustCreate(t, reception, id)
		var wg sync.WaitGroup
		for m, transition := range map[*engine.Machine]string{reception: "receive", acceptance: "accept"} {
			wg.Go(func() {
				if res, err := m.Fire(context.Background(), transition, id, nil); err != nil || res.Outcome != engine.Applied {
					t.Errorf("%s: %+v, %v, want Applied", transition, res, err)
				}
			})
		}
		wg.Wait()
		a, err := reception.Get(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		b, err := acceptance.Get(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		if a.State != "received" || b.State != "accepted" || a.Version != 3 || b.Version != 3 {
			t.Errorf("item %s is %+v and %+v, want both moved, at version 3", id, a, b)
		}
	}
	mustCreate(t, reception, "r")
	mustFire(t, acceptance, "reject", "r", nil)
	if res := mustFire(t, acceptance, "reject", "r", nil); res.Outcome != engine.AlreadyReached {
		t.Errorf("the second reject gave %v", res.Outcome)
	}
	if entries, err := acceptance.Journal(context.Background(), "r"); err != nil || len(entries) != 1 {
		t.Errorf("entries %v, %v, want one of this machine", entries, err)
	}
}

// The DDL of definitions that share a table has its columns once, and each journal once.
func TestSharedDDL(t *testing.T) {
	t.Parallel()
	ddl := sqlite.DDL(define(t, receptionText), define(t, acceptanceText), define(t, strings.Replace(bareText, "lamp", "other", 1)))
	for part, n := range map[string]int{
		"CREATE TABLE IF NOT EXISTS `items`": 1, "CREATE TABLE IF NOT EXISTS `fsm_journal`": 1, "CREATE TABLE IF NOT EXISTS `bare_lamp`": 1,
		"`id` TEXT": 2, "`reception` TEXT NOT NULL,": 1, "`acceptance` TEXT NOT NULL DEFAULT 'pending'": 1, "`version` INTEGER NOT NULL DEFAULT 1": 2,
	} {
		if got := strings.Count(ddl, part); got != n {
			t.Errorf("%q occurs %d times, want %d, in\n%s", part, got, n, ddl)
		}
	}
	store := open(t)
	for range 2 {
		mustExec(t, store.DB(), ddl)
	}
}

// A process that migrates all machines of a table and binds one counts over all: versions
// that only the others have reached are not given again.
func TestMigratedMachinesCount(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	owner, guest := define(t, receptionText), define(t, acceptanceText)
	path := filepath.Join(t.TempDir(), "items.db")
	store := openAt(t, path)
	if err := store.Migrate(ctx, owner, guest); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, bind(t, store, owner), "i")
	mustFire(t, bind(t, store, guest), "accept", "i", nil)
	mustExec(t, store.DB(), "DELETE FROM items")

	other := openAt(t, path)
	if err := other.Migrate(ctx, owner, guest); err != nil {
		t.Fatal(err)
	}
	res, err := bind(t, other, owner).Create(ctx, engine.Row{"id": "i"})
	if err != nil || res.Version != 3 {
		t.Errorf("created again at version %d, %v, want 3: the guest had reached 2", res.Version, err)
	}
}

// Definitions that cannot be counted together are refused before anything is created.
func TestMigrateRefusesTwoJournalsOfOneTable(t *testing.T) {
	t.Parallel()
	store := open(t)
	err := store.Migrate(context.Background(), define(t, receptionText), define(t, acceptanceText+"journal: {table: other_log}\n"))
	if err == nil || !strings.Contains(err.Error(), "machines reception and acceptance share table items") {
		t.Errorf("Migrate = %v, want it refused", err)
	}
	var n int
	if err := store.DB().Get(&n, "SELECT count(*) FROM sqlite_master"); err != nil || n != 0 {
		t.Errorf("%d tables, %v, want none", n, err)
	}
}
