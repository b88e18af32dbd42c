package expr

import (
	"fmt"
	"slices"
	"testing"
)

// TestNewEnv: an environment for many expressions finds what a plain one finds.
func TestNewEnv(t *testing.T) {
	env := NewEnv(testEnv.Fields).WithArgs(nil).WithArgs(testEnv.Args)
	plain := Env{Fields: testEnv.Fields, Args: testEnv.Args}
	for _, v := range append(testEnv.Fields, testEnv.Args...) {
		for _, name := range []string{v.Name, v.Name + "x", v.Name[1:] + "q"} {
			for _, src := range []string{name + " == " + name, "args." + name + " == nil", "args['" + name + "'] == 1", "$env." + name + " == 1"} {
				e1, p1 := ParseCondition(src, plain)
				e2, p2 := ParseCondition(src, env)
				if (e1 == nil) != (e2 == nil) || !slices.Equal(p1, p2) {
					t.Errorf("%s: %v, want %v", src, p2, p1)
				}
			}
		}
	}
}

// TestNearestEffort: those who share an environment share what is spent on their mistakes.
func TestNearestEffort(t *testing.T) {
	var fields []Var
	for i := range 1000 {
		fields = append(fields, Var{Name: fmt.Sprintf("field%d", i), Type: Int})
	}
	env := NewEnv(fields)
	near := func(e Env) string {
		_, problems := ParseCondition("feild7 == 1", e)
		return problems[0].Nearest
	}
	for range 1 + maxEffort/1000 {
		if got := near(env.WithArgs(nil)); got != "field7" {
			t.Fatalf("nearest is %q after %d comparisons", got, *env.effort)
		}
		if *env.effort > maxEffort-1000 {
			break
		}
	}
	*env.effort = maxEffort
	if got := near(env); got != "" || *env.effort > maxEffort+2 {
		t.Errorf("nearest is %q after %d comparisons, more than %d", got, *env.effort, maxEffort)
	}
	if got := near(Env{Fields: fields}); got != "field7" {
		t.Errorf("nearest is %q in an environment of one expression", got)
	}
}
