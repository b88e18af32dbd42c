// Command orders tells what the engine does for an order service: a payment callback
// that arrives a hundred times, a late one, two operators at once, and a request
// that the machine refuses.
//
//	go run ./examples/orders            # on a fresh SQLite file, removed afterwards
//	go run ./examples/orders -db FILE   # keeps the database
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/orders/order"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

//go:generate go run github.com/fsmgen/fsmgen/cmd/fsmgen generate --out order order.yaml

func main() {
	db := flag.String("db", "", "keep the SQLite database in this `file`")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *db); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// run opens the store, makes the tables, and tells the story.
func run(ctx context.Context, out io.Writer, db string) (err error) {
	store, cleanup, err := open(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	if err := store.Migrate(ctx, order.Definition()); err != nil {
		return err
	}
	eng, err := engine.New(store)
	if err != nil {
		return err
	}
	orders, err := order.New(ctx, eng)
	if err != nil {
		return err
	}
	return tell(ctx, out, eng, orders)
}

// open opens the database, in a directory of its own where no file is named.
func open(ctx context.Context, db string) (store *persistence.Store, cleanup func() error, err error) {
	remove := func() error { return nil }
	if db == "" {
		dir, err := os.MkdirTemp("", "fsmgen-orders-")
		if err != nil {
			return nil, nil, err
		}
		db, remove = filepath.Join(dir, "orders.db"), func() error { return os.RemoveAll(dir) }
	}
	store, err = sqlite.Open(ctx, db)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return store, func() error { return errors.Join(store.Close(), remove()) }, nil
}
