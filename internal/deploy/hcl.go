package deploy

import (
	"fmt"
	"strings"
)

// hcl writes HCL as terraform fmt would.
type hcl struct {
	strings.Builder
	depth int
}

// line writes a line at the current depth; an empty format writes an empty line. Arguments are written as they are:
// text for HCL has to be quoted before.
func (h *hcl) line(format string, args ...any) {
	if format == "" {
		h.WriteByte('\n')
		return
	}
	h.WriteString(strings.Repeat("  ", h.depth))
	fmt.Fprintf(h, format, args...)
	h.WriteByte('\n')
}

// block writes a block with its body.
func (h *hcl) block(head string, body func()) {
	h.line("%s {", head)
	h.depth++
	body()
	h.depth--
	h.line("}")
}

// set is an attribute with an expression; "" leaves it out.
type set struct{ name, to string }

// set writes attributes of one line each, with their signs below each other.
// An attribute whose text is "" is left out.
func (h *hcl) set(all ...set) {
	width := 0
	for _, s := range all {
		if s.to != "" {
			width = max(width, len(s.name))
		}
	}
	for _, s := range all {
		if s.to != "" {
			h.line("%-*s = %s", width, s.name, s.to)
		}
	}
}

// quoted is a text as HCL has it.
func quoted(s string) string { return `"` + escaped(s) + `"` }

// escapes keep a literal from being read as an end of a text, an interpolation or a directive.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", "$${", "%{", "%%{", "\n", `\n`)

// escaped is the inside of a text, without its quotes.
func escaped(s string) string { return escapes.Replace(s) }

// quotedAll is a list of texts.
func quotedAll(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = quoted(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// snake is a name as Terraform's are.
// Of several capitals that follow each other, only the first begins a word: DataKeyARN becomes data_key_arn.
func snake(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		up := c >= 'A' && c <= 'Z'
		if before := byte('A'); up && i > 0 {
			if before = id[i-1]; before < 'A' || before > 'Z' {
				b.WriteByte('_')
			}
		}
		if up {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}
