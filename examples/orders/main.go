// Command orders tells what the engine does for an order service: a payment callback
// that arrives a hundred times, a late one, two operators at once, and a request
// that the machine refuses.
//
//	go run ./examples/orders            # on a fresh SQLite file, removed afterwards
//	go run ./examples/orders -db FILE   # keeps the database
//	go run ./examples/orders -db postgres://localhost/test
//	go run ./examples/orders -db 'mysql://root@tcp(localhost:3306)/test'
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
	"github.com/fsmgen/fsmgen/examples/orders/order"
)

//go:generate go run github.com/fsmgen/fsmgen/cmd/fsmgen generate --tests --out order order.yaml

func main() {
	db := flag.String("db", "", database.Usage)
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *db); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
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
