package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/orders/order"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// note is a model of gorm's, written beside the transition.
type note struct {
	ID   uint
	Text string
}

// gormShop is a machine and gorm over one pool.
func gormShop(t *testing.T, prepared bool) (*order.Machine, *gorm.DB) {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "gorm.db"))
	must(t, err)
	t.Cleanup(func() {
		if n := store.DB().Stats().InUse; n != 0 {
			t.Errorf("%d connections are in use", n)
		}
		must(t, store.Close())
	})
	must(t, store.Migrate(ctx, order.Definition()))
	eng, err := engine.New(store)
	must(t, err)
	orders, err := order.New(ctx, eng)
	must(t, err)
	db, err := gorm.Open(gormsqlite.New(gormsqlite.Config{Conn: store.DB().DB}), &gorm.Config{PrepareStmt: prepared})
	must(t, err)
	must(t, db.AutoMigrate(&note{}))
	_, err = orders.Create(ctx, order.NewOrder{ID: "o-1", Amount: 5})
	must(t, err)
	return orders, db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// held is the transaction that gorm holds; with PrepareStmt it lies one level deeper.
func held(tx *gorm.DB) engine.Tx {
	if p, ok := tx.Statement.ConnPool.(*gorm.PreparedStmtTX); ok {
		return p.Tx.(*sql.Tx)
	}
	return tx.Statement.ConnPool.(*sql.Tx)
}

// TestGormTransaction: In takes the transaction that gorm holds, and what both wrote is
// committed or rolled back together.
func TestGormTransaction(t *testing.T) {
	for name, prepared := range map[string]bool{"plain": false, "PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			orders, db := gormShop(t, prepared)
			undo := errors.New("undo")
			for _, end := range []error{undo, nil} {
				err := db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					if err := tx.Create(&note{Text: "paid by card"}).Error; err != nil {
						return err
					}
					if _, err := orders.In(held(tx)).Pay(ctx, "o-1", order.PayArgs{Amount: 5, PaymentRef: "r"}); err != nil {
						return err
					}
					return end
				})
				if !errors.Is(err, end) {
					t.Fatal(err)
				}
				var notes int64
				must(t, db.Model(&note{}).Count(&notes).Error)
				row, err := orders.Get(ctx, "o-1")
				must(t, err)
				want, version := int64(0), int64(1)
				if end == nil {
					want, version = 1, 2
				}
				if notes != want || row.Version != version {
					t.Errorf("after %v: %d notes, the order is %s at version %d", end, notes, row.Status, row.Version)
				}
			}
		})
	}
}

// A pool is no transaction: gorm outside of one is refused.
func TestGormPoolIsRefused(t *testing.T) {
	orders, db := gormShop(t, false)
	pool, err := db.DB()
	must(t, err)
	if _, err := orders.In(pool).Pay(context.Background(), "o-1", order.PayArgs{Amount: 5, PaymentRef: "r"}); !errors.Is(err, engine.ErrInvalidArgs) {
		t.Errorf("a pool is answered %v", err)
	}
}
