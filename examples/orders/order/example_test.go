package order_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/orders/order"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// Code that speaks looplab/fsm is given the definition as such a machine. It stands in
// memory and moves no row.
func ExampleFSM() {
	machine, err := order.FSM(order.StatePaid)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(machine.Can("ship"), machine.Can("pay"))
	if err := machine.Event(context.Background(), "ship"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(machine.Current())
	// Output:
	// true false
	// shipped
}

// In takes the *sql.Tx that other libraries are built on. With ent, begin it on the
// *sql.DB that the client was opened with, and give the client of the transaction
// entsql.Conn{ExecQuerier: tx}: what both write is committed together.
func ExampleMachine_In() {
	if err := payAndNote(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// inside: paid at version 2
	// committed: paid, with 1 note
}

func payAndNote(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fsmgen-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "orders.db"))
	if err != nil {
		return err
	}
	defer store.Close()
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
	pool := store.DB().DB // or the *sql.DB of an ent client, with sqlite.New over it
	if _, err := pool.ExecContext(ctx, "CREATE TABLE notes (order_id text, note text)"); err != nil {
		return err
	}
	if _, err := orders.Create(ctx, order.NewOrder{ID: "o-1", Amount: 9900}); err != nil {
		return err
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if _, err := tx.ExecContext(ctx, "INSERT INTO notes VALUES ('o-1', 'paid by card')"); err != nil {
		return err
	}
	res, err := orders.In(tx).Pay(ctx, "o-1", order.PayArgs{Amount: 9900, PaymentRef: "wx-1"})
	if err != nil {
		return err
	}
	fmt.Printf("inside: %s at version %d\n", res.State, res.Version)
	if err := tx.Commit(); err != nil {
		return err
	}
	if err := res.AfterCommit(ctx); err != nil {
		return err
	}
	o, err := orders.Get(ctx, "o-1")
	if err != nil {
		return err
	}
	var notes int
	if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM notes").Scan(&notes); err != nil {
		return err
	}
	fmt.Printf("committed: %s, with %d note\n", o.Status, notes)
	return nil
}
