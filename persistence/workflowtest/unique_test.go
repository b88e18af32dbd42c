package workflowtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

const folding = `
machine: doc
table: {name: docs}
fields: {number: {type: string}, region: {type: string}, batch: {type: int}, code: {type: string}}
unique: [[number], [region, batch], [code]]
initial: a
states: {a: , b: {final: true}}
transitions: {pay: {from: a, to: b}}
`

// foldingTables have unique keys that compare number and region in a way of the user's own,
// and code by bytes.
var foldingTables = map[string][]string{
	"sqlite": {
		"CREATE TABLE docs (id TEXT PRIMARY KEY NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL, number TEXT NOT NULL COLLATE NOCASE UNIQUE, " +
			"region TEXT NOT NULL, batch INTEGER NOT NULL, code TEXT NOT NULL COLLATE NOCASE)",
		"CREATE UNIQUE INDEX docs_region ON docs (batch, region COLLATE NOCASE)",
		"CREATE UNIQUE INDEX docs_code ON docs (code COLLATE BINARY)",
	},
	"mariadb": {
		"CREATE TABLE docs (id VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PRIMARY KEY, status VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, " +
			"version BIGINT NOT NULL, number VARCHAR(50) CHARACTER SET latin1 COLLATE latin1_german1_ci NOT NULL UNIQUE, region VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, " +
			"batch BIGINT NOT NULL, code VARCHAR(50) CHARACTER SET utf8mb3 COLLATE utf8mb3_nopad_bin NOT NULL UNIQUE, UNIQUE (region, batch))",
	},
}

// TestUniqueKeyThatFolds: what a declared unique key takes for equal is the row that has it,
// however the key compares.
func TestUniqueKeyThatFolds(t *testing.T) {
	for _, k := range databases() {
		ddl := foldingTables[k.name]
		if ddl == nil {
			continue // New takes no column that folds
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := k.open(t)
			for _, text := range ddl {
				_, err := p.db.ExecContext(t.Context(), text)
				check(t, err)
			}
			s := bind(t, k.name, p, parse(t, folding))
			row := func(id, number, region string, batch int, code string) engine.Row {
				return engine.Row{"id": id, "number": number, "region": region, "batch": batch, "code": code}
			}
			_, err := s.m.Create(t.Context(), row("1", "A1", "EU", 1, "c"), engine.WithKey("k"))
			check(t, err)
			calls := func(m *engine.Machine) {
				t.Helper()
				for what, twin := range map[string]engine.Row{
					"number": row("2", "a1", "US", 1, "d"),
					"region": row("2", "A2", "eu", 1, "d"),
					"code":   row("2", "A2", "US", 1, "c"),
				} {
					for _, key := range []string{"k2", ""} {
						var opts []engine.CallOption
						if key != "" {
							opts = append(opts, engine.WithKey(key))
						}
						res, err := m.Create(t.Context(), twin, opts...)
						if !errors.Is(err, engine.ErrMismatch) {
							t.Errorf("the %s of another row: %+v, %v", what, res, err)
						}
					}
				}
				_, err := m.Create(t.Context(), row("2", "a1", "EU", 1, "c"), engine.WithKey("k")) // seen under the row that has the number
				wantError(t, err, engine.ErrKeyReused)
				res, err := m.Create(t.Context(), row("2", "A1", "EU", 1, "c"))
				if err != nil || res.Outcome != engine.AlreadyReached || res.ID != "1" {
					t.Errorf("the same under another id: %+v, %v", res, err)
				}
			}
			calls(s.m)
			tx, err := s.Begin(t.Context(), s.txForm(), 0)
			check(t, err)
			calls(s.m.In(tx.Tx))
			check(t, tx.Rollback())
			s.create(t, s.m, row("3", "A3", "EU", 3, "C"))
			if k.name != "mariadb" {
				return
			}
			s.create(t, s.m, row("4", "??", "EU", 4, "?"))
			for _, odd := range []engine.Row{row("5", "日本", "EU", 5, "e"), row("5", "A5", "EU", 5, "🛒")} { // which the column does not hold
				_, err := s.m.Create(t.Context(), odd)
				if err == nil || strings.Contains(err.Error(), "Illegal mix") || !strings.Contains(err.Error(), "Incorrect string value") {
					t.Errorf("%v: %v", odd, err)
				}
			}
			s.create(t, s.m, row("5", "Ä5", "EU", 5, "日本"))
			_, err = s.m.Create(t.Context(), row("6", "ä5", "EU", 6, "f"))
			wantError(t, err, engine.ErrMismatch)
		})
	}
}
