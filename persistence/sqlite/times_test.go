package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// dueText asks whether a row is due by comparing its column with the call's time.
const dueText = `
machine: job
table: {name: jobs}
fields: {due_at: {type: time}, done_at: {type: time, nullable: true}}
initial: waiting
states: {waiting: , done: {final: true}}
transitions:
  run: {from: waiting, to: done, args: {asked: time}, when: due_at <= args.asked, set: {done_at: now()}}
`

// dueAt is 08:00 in a zone eight hours ahead: midnight, UTC.
var dueAt = time.Date(2026, 3, 1, 8, 0, 0, 123456000, time.FixedZone("CST", 8*3600))

// mattn/go-sqlite3#1214, #174, #951: times are text there, read by the declared type
// and compared as text. Whatever the column is called, the value is right, and an
// offset does not break the order.
func TestTimes(t *testing.T) {
	for _, declared := range []string{"DATETIME", "TIMESTAMP", "timestamp", "timestamp with time zone", "TEXT", "DATE", ""} {
		t.Run(declared, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			mustExec(t, store.DB(), "CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT NOT NULL, version INTEGER NOT NULL, due_at "+declared+" NOT NULL, done_at "+declared+")")
			m := machineOn(t, store, dueText, engine.WithClock(func() time.Time { return dueAt.Add(time.Hour) }))
			ctx := context.Background()
			if _, err := m.Create(ctx, engine.Row{"id": "j", "due_at": dueAt}); err != nil {
				t.Fatal(err)
			}
			for _, at := range []time.Time{dueAt.Add(-time.Microsecond), dueAt.Add(-7 * time.Hour), dueAt.Add(-time.Hour).In(time.FixedZone("", -11*3600))} {
				if _, err := m.Fire(ctx, "run", "j", engine.Args{"asked": at}); err == nil {
					t.Errorf("a job due at %v runs at %v", dueAt, at)
				}
			}
			if _, err := m.Fire(ctx, "run", "j", engine.Args{"asked": dueAt.UTC()}); err != nil {
				t.Errorf("a job due at %v does not run then: %v", dueAt, err)
			}
			e, err := m.Get(ctx, "j")
			if err != nil {
				t.Fatal(err)
			}
			wantTime(t, "due_at", e.Row()["due_at"], dueAt)
			wantTime(t, "done_at", e.Row()["done_at"], dueAt.Add(time.Hour))
			entries, err := m.Journal(ctx, "j")
			if err != nil || len(entries) != 2 {
				t.Fatal(entries, err)
			}
			wantTime(t, "the entry", entries[1].At, dueAt.Add(time.Hour))
		})
	}
}

func wantTime(t *testing.T, what string, got any, want time.Time) {
	t.Helper()
	at, ok := got.(time.Time)
	if !ok || !at.Equal(want) || at.Location() != time.UTC {
		t.Errorf("%s is %v, want %v in UTC", what, got, want.UTC())
	}
}

// Rows of the team's own, in whatever form a driver or a person wrote them.
func TestTimesWrittenElsewhere(t *testing.T) {
	t.Parallel()
	store := open(t)
	m := machineOn(t, store, dueText)
	want := dueAt.UTC()
	for text, want := range map[string]time.Time{
		"2026-03-01 08:00:00.123456+08:00":  want,
		"2026-03-01T08:00:00.123456+08:00":  want,
		"2026-03-01 00:00:00.123456":        want,
		"2026-03-01T00:00:00.123456Z":       want,
		"2026-03-01 00:00:00.123456+00:00":  want,
		"2026-02-28 19:00:00.1234569-05:00": want,
		"2026-03-01 00:00:00":               want.Truncate(time.Second),
		"2026-03-01":                        want.Truncate(24 * time.Hour),
	} {
		mustExec(t, store.DB(), "INSERT OR REPLACE INTO jobs (id, status, version, due_at) VALUES ('j', 'waiting', 1, ?)", text)
		e, err := m.Get(context.Background(), "j")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		wantTime(t, text, e.Row()["due_at"], want)
	}
	for _, text := range []string{"soon", "", "2026-13-01", "01/02/2026"} {
		mustExec(t, store.DB(), "INSERT OR REPLACE INTO jobs (id, status, version, due_at) VALUES ('j', 'waiting', 1, ?)", text)
		if e, err := m.Get(context.Background(), "j"); err == nil {
			t.Errorf("%q is read as %v", text, e.Row()["due_at"])
		} else if want := "due_at"; !containsText(err, want) {
			t.Errorf("%q: %v, want it to name the column", text, err)
		}
	}
}

// Times are kept as UTC in one width, so that text order is time order, and mean the
// same on a host in another zone.
func TestTimesMoveBetweenZones(t *testing.T) { //nolint:paralleltest // it changes the process's zone
	local := time.Local
	defer func() { time.Local = local }()
	path := filepath.Join(t.TempDir(), "x.db")
	const step = 272 * time.Microsecond // the second time then ends in zeros
	clock := dueAt
	for i, zone := range []*time.Location{time.FixedZone("A", 8*3600), time.FixedZone("B", -5*3600), time.UTC} {
		time.Local = zone
		clock = clock.Add(step).In(zone)
		store, err := sqlite.Open(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		m := machineOn(t, store, dueText, engine.WithClock(func() time.Time { return clock }))
		if _, err := m.Create(context.Background(), engine.Row{"id": fmtInt(i), "due_at": clock}); err != nil {
			t.Fatal(err)
		}
		for j := range i + 1 {
			e, err := m.Get(context.Background(), fmtInt(j))
			if err != nil {
				t.Fatal(err)
			}
			wantTime(t, "row "+fmtInt(j)+" in zone "+zone.String(), e.Row()["due_at"], dueAt.Add(time.Duration(j+1)*step))
		}
		closeIdle(t, store)
	}
	db := sqlx.MustOpen("sqlite3", path)
	defer db.Close() //nolint:errcheck // for reading
	var last string
	if err := db.Get(&last, "SELECT max(at) FROM fsm_journal"); err != nil || last != "2026-03-01T00:00:00.124272Z" {
		t.Errorf("max(at) is %q, %v", last, err)
	}
	var widths int
	if err := db.Get(&widths, "SELECT count(DISTINCT length(at)) FROM fsm_journal"); err != nil || widths != 1 {
		t.Errorf("times in %d widths, %v", widths, err)
	}
}
