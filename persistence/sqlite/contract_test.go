package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

const contractWait = 300 * time.Millisecond

func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: openContract,
		Features: storetest.Features{
			Forms:     []storetest.TxForm{storetest.StdTx, storetest.SqlxTx, storetest.Conn},
			Deferred:  []storetest.TxForm{storetest.Conn},
			OneWriter: true, Wait: contractWait, Reopen: true, Loose: true, Nulls: true,
		},
	})
}

func openContract(t testing.TB, defs ...*definitions.Machine) storetest.Backend {
	path := filepath.Join(t.TempDir(), "contract.db")
	beside, err := sqlx.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=1000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, beside) })
	open := func(t testing.TB) storetest.SQL {
		store, err := Open(t.Context(), path, WithWait(contractWait))
		if err != nil {
			t.Fatal(err)
		}
		return storetest.SQL{Opened: store, Pool: store.DB(), More: []*sqlx.DB{store.Reader()}}
	}
	b := open(t)
	t.Cleanup(func() { closeAll(t, b.Opened.(*persistence.Store)) })
	b.Beside, b.Quote, b.Param, b.LoosenText, b.RefuseText = beside, dialect{}.Quote, dialect{}.Param, loosened, refusing
	b.OpenAgain = func(t testing.TB) storetest.SQL {
		closeAll(t, b.Opened.(*persistence.Store))
		again := open(t)
		b.Opened, b.Pool, b.More = again.Opened, again.Pool, again.More
		return b
	}
	if err := b.Opened.(*persistence.Store).Migrate(t.Context(), defs...); err != nil {
		t.Fatal(err)
	}
	return &b
}

func closeAll(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// refusing has a trigger refuse every UPDATE.
func refusing(table string) []string {
	return []string{"CREATE TRIGGER frozen BEFORE UPDATE ON " + table + " BEGIN SELECT RAISE(ABORT, 'frozen'); END"}
}

// loosened makes the table anew, without CHECK and NOT NULL.
func loosened(def *definitions.Machine) []string {
	text := strings.ReplaceAll(persistence.DDL(dialect{}, def)[0], " NOT NULL", "")
	head, _, _ := strings.Cut(text, ",\n  CHECK")
	return []string{"DROP TABLE " + persistence.QuoteTable(dialect{}, def.Table.Name), head + "\n)"}
}
