// Command payments tells what Go code on transitions is for: a risk check that may
// refuse, a ledger that is posted in the same transaction as the payment moves, and a
// notification once that has committed.
//
//	go run ./examples/payments            # on a fresh SQLite file, removed afterwards
//	go run ./examples/payments -db FILE   # keeps the database
//	go run ./examples/payments -db postgres://localhost/test
//	go run ./examples/payments -db 'mysql://root@tcp(localhost:3306)/test'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/internal/database"
	"github.com/fsmgen/fsmgen/examples/payments/payment"
)

//go:generate go run github.com/fsmgen/fsmgen/cmd/fsmgen generate --tests --out payment payment.yaml

func main() {
	db := flag.String("db", "", database.Usage)
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *db); err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

// run opens the store, makes the tables, and tells the story.
func run(ctx context.Context, out io.Writer, db string) (err error) {
	store, cleanup, err := database.Open(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	if err := store.Migrate(ctx, payment.Definition()); err != nil {
		return err
	}
	books := &ledger{db: store.DB()}
	if err := books.migrate(ctx); err != nil {
		return err
	}
	eng, err := engine.New(store)
	if err != nil {
		return err
	}
	code := &hooks{out: out, ledger: books, limit: 100_000}
	payments, err := payment.New(ctx, eng, code)
	if err != nil {
		return err
	}
	return tell(ctx, &story{Writer: out, eng: eng, payments: payments, hooks: code})
}
