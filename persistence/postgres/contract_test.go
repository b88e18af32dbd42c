package postgres

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

const contractWait = 300 * time.Millisecond

func TestContract(t *testing.T) {
	servertest.Postgres(t)
	storetest.Run(t, storetest.Harness{
		Open: openContract,
		Features: storetest.Features{
			Forms:  []storetest.TxForm{storetest.StdTx, storetest.SqlxTx, storetest.Conn},
			Levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
			Wait:   contractWait, Reopen: true, Loose: true, Nulls: true, Locks: true,
		},
	})
}

func openContract(t testing.TB, defs ...*definitions.Machine) storetest.Backend {
	dsn := servertest.PostgresSchema(t)
	beside, err := sqlx.Open("pgx", dsn)
	check(t, err)
	t.Cleanup(func() { check(t, beside.Close()) })
	open := func(t testing.TB) storetest.SQL {
		store, err := Open(t.Context(), dsn, WithLockTimeout(contractWait), WithConnections(12))
		check(t, err)
		return storetest.SQL{Opened: store, Pool: store.DB()}
	}
	b := open(t)
	t.Cleanup(func() { check(t, b.Opened.(*persistence.Store).Close()) })
	b.Beside, b.Quote, b.Param, b.LoosenText, b.RefuseText = beside, dialect{}.Quote, dialect{}.Param, loosened, refusing
	b.OpenAgain = func(t testing.TB) storetest.SQL {
		check(t, b.Opened.(*persistence.Store).Close())
		again := open(t)
		b.Opened, b.Pool, b.More = again.Opened, again.Pool, nil
		return b
	}
	check(t, b.Opened.(*persistence.Store).Migrate(t.Context(), defs...))
	return &b
}

// refusing has a trigger refuse every UPDATE.
func refusing(table string) []string {
	return []string{
		"CREATE FUNCTION frozen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'frozen'; END $$",
		"CREATE TRIGGER frozen BEFORE UPDATE ON " + table + " FOR EACH ROW EXECUTE FUNCTION frozen()",
	}
}

// loosened makes the table anew, without CHECK and NOT NULL.
func loosened(def *definitions.Machine) []string {
	text := persistence.DDL(dialect{}, def)[0]
	head, _, _ := strings.Cut(strings.ReplaceAll(text, " NOT NULL", ""), ",\n  CHECK")
	return []string{"DROP TABLE " + persistence.QuoteTable(dialect{}, def.Table.Name), head + "\n)"}
}
