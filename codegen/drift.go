package codegen

import (
	"bytes"
	"slices"
	"strings"
)

// DriftKind is how a file on disk differs from what would be generated.
type DriftKind string

// The kinds of drift.
const (
	Missing  DriftKind = "missing"  // would be generated, is not there
	Changed  DriftKind = "changed"  // is there, with other content
	Orphaned DriftKind = "orphaned" // is ours by its header, would not be generated
	Foreign  DriftKind = "foreign"  // would be generated, but a file without our header is in its place
)

// Drift is one file that is not as it would be generated.
type Drift struct {
	Name string
	Kind DriftKind
}

// Compare holds generated files against what one directory has on disk, by base
// name; disk may hold other files too. Line ends as a checkout may change them do
// not count. The result is sorted by name.
func Compare(files []File, disk map[string][]byte) []Drift {
	var drift []Drift
	generated := make(map[string]bool, len(files))
	for _, f := range files {
		generated[f.Name] = true
		switch data, ok := disk[f.Name]; {
		case !ok:
			drift = append(drift, Drift{f.Name, Missing})
		case !IsGenerated(data):
			drift = append(drift, Drift{f.Name, Foreign})
		case !bytes.Equal(unixLines(data), f.Data):
			drift = append(drift, Drift{f.Name, Changed})
		}
	}
	for name, data := range disk {
		if !generated[name] && IsGenerated(data) {
			drift = append(drift, Drift{name, Orphaned})
		}
	}
	slices.SortFunc(drift, func(a, b Drift) int { return strings.Compare(a.Name, b.Name) })
	return drift
}

// IsGenerated reports whether data is a file of ours: its first line is [Header].
func IsGenerated(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r"))) == Header
}

func unixLines(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}
