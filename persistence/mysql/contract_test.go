package mysql

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

// contractWait is the shortest wait for a row that the server counts.
const contractWait = time.Second

func TestContract(t *testing.T) {
	servertest.MariaDB(t)
	storetest.Run(t, storetest.Harness{
		Open: openContract,
		Features: storetest.Features{
			Forms:  []storetest.TxForm{storetest.StdTx, storetest.SqlxTx, storetest.Conn},
			Levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
			Wait:   contractWait, Text: 255, Reopen: true, Loose: true, Nulls: true, Locks: true,
		},
	})
}

func openContract(t testing.TB, defs ...*definitions.Machine) storetest.Backend {
	cfg := servertest.MariaDBDatabase(t)
	plain := cfg.Clone()
	plain.ParseTime, plain.Loc, plain.InterpolateParams, plain.ClientFoundRows = true, time.UTC, true, true
	beside, err := pool(plain)
	check(t, err)
	t.Cleanup(func() { check(t, beside.Close()) })
	open := func(t testing.TB) storetest.SQL {
		store, err := Open(t.Context(), cfg.FormatDSN(), WithLockWait(contractWait))
		check(t, err)
		return storetest.SQL{Opened: store, Pool: store.DB()}
	}
	b := open(t)
	t.Cleanup(func() { check(t, b.Opened.(*persistence.Store).Close()) })
	b.Beside, b.Quote, b.Param, b.LoosenText, b.RefuseText = beside, dialect{}.Quote, dialect{}.Param, loosened, refusing
	b.OpenAgain = func(t testing.TB) storetest.SQL {
		check(t, b.Opened.(*persistence.Store).Close())
		again := open(t)
		b.Opened, b.Pool, b.More = again.Opened, again.Pool, []*sqlx.DB{}
		return b
	}
	check(t, b.Opened.(*persistence.Store).Migrate(t.Context(), defs...))
	return &b
}

// refusing has a trigger refuse every UPDATE.
func refusing(table string) []string {
	return []string{"CREATE TRIGGER frozen BEFORE UPDATE ON " + table + " FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'frozen'"}
}

// loosened makes the table anew, without CHECK and NOT NULL.
func loosened(def *definitions.Machine) []string {
	text := persistence.DDL(dialect{server{maria: true}}, def)[0]
	head, _, _ := strings.Cut(strings.ReplaceAll(text, " NOT NULL", ""), ",\n  CHECK")
	return []string{"DROP TABLE " + persistence.QuoteTable(dialect{}, def.Table.Name), head + "\n) ENGINE=InnoDB"}
}
