package definitions

import (
	"testing"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/shopspring/decimal"
)

// sameMachine holds that two machines are equal but for where they came from.
func sameMachine(t *testing.T, want, got *Machine) {
	t.Helper()
	options := cmp.Options{
		cmpopts.IgnoreFields(Machine{}, "Source", "Warnings"),
		cmpopts.IgnoreUnexported(expr.Node{}),
		cmp.Comparer(func(a, b decimal.Decimal) bool { return a.Equal(b) }),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("machines differ (-want +got):\n%s", diff)
	}
	if want.Hash() != got.Hash() || string(want.Canonical()) != string(got.Canonical()) {
		t.Error("hash or canonical form differ")
	}
}
