package codegen

import (
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// goTypes are the canonical Go types of the format's types.
var goTypes = map[expr.Type]string{
	expr.String:  "string",
	expr.Int:     "int64",
	expr.Float:   "float64",
	expr.Bool:    "bool",
	expr.Time:    "time.Time",
	expr.Bytes:   "[]byte",
	expr.JSON:    "json.RawMessage",
	expr.Decimal: "decimal.Decimal",
}

// typeImports are the packages that goTypes name.
var typeImports = map[expr.Type]string{
	expr.Time:    "time",
	expr.JSON:    "encoding/json",
	expr.Decimal: decimalPath,
}

const (
	decimalPath     = "github.com/shopspring/decimal"
	definitionsPath = "github.com/fsmgen/fsmgen/definitions"
	enginePath      = "github.com/fsmgen/fsmgen/engine"
)

// imports lists the packages the file needs, quoted, in the groups that gofmt
// users expect: standard library, others.
func imports(m *definitions.Machine) [][]string {
	std := []string{"context", "database/sql/driver", "errors", "fmt", "sync"}
	others := []string{definitionsPath, enginePath}
	if m.Table.ID.Type == expr.Int || m.Table.Status.Type == expr.Int {
		std = append(std, "strconv")
	}
	add := func(t expr.Type) {
		switch path := typeImports[t]; path {
		case "":
		case decimalPath:
			others = append(others, path)
		default:
			std = append(std, path)
		}
	}
	for _, f := range m.Fields {
		add(f.Type)
	}
	for _, t := range m.Transitions {
		for _, a := range t.Args {
			add(a.Type)
		}
	}
	return [][]string{quoteSorted(std), quoteSorted(others)}
}

func quoteSorted(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	for i, p := range paths {
		paths[i] = quote(p)
	}
	return paths
}
