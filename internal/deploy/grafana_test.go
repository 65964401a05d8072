package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/failtest"
	"weir/internal/measures"
)

// names are the metrics that a query names, without the suffix of a histogram's series.
func names(expr string) (out []string) {
	for _, name := range regexp.MustCompile(`weir_\w+`).FindAllString(expr, -1) {
		out = append(out, strings.TrimSuffix(name, "_bucket"))
	}
	return out
}

// inList are the metrics of processes, by name.
func inList() map[string]*measures.Metric {
	out := map[string]*measures.Metric{}
	for _, m := range measures.All() {
		if m.Name != "" {
			out[m.Name] = m
		}
	}
	return out
}

// TestGrafana: the dashboard has a panel for each metric of processes and for no other, no two panels overlap, and those
// that show an age have a line at each warning.
func TestGrafana(t *testing.T) {
	var d struct {
		Panels []struct {
			ID          int
			Title       string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
			FieldConfig struct {
				Defaults struct {
					Thresholds struct{ Steps []struct{ Value *int } }
				}
			}
		}
	}
	failtest.On(t, json.Unmarshal(Grafana([]string{"gallery"}), &d))
	list, shown, places := inList(), map[string]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d lacks its title, question or query", p.ID)
		}
		if at := fmt.Sprint(p.GridPos); places[at] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d is where another is: %s", p.ID, at)
		} else {
			places[at] = true
		}
		for _, q := range p.Targets {
			for _, name := range names(q.Expr) {
				if list[name] == nil {
					t.Errorf("panel %s asks for %s, which is not in the list", p.Title, name)
					continue
				}
				if shown[name] = true; list[name].Ageing && len(p.FieldConfig.Defaults.Thresholds.Steps) != 1+len(measures.Warnings()) {
					t.Errorf("panel %s has no lines at 25, 50 and 80 %% of 24 hours", p.Title)
				}
			}
		}
	}
	for name := range list {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestPrometheusRules: ages have alarms at 6, 12 and 19.2 hours, each alarm asks for metrics of the list alone, and each
// metric with a section of the runbook has one.
func TestPrometheusRules(t *testing.T) {
	text, err := PrometheusRules([]string{"gallery", "wardrobe"})
	failtest.On(t, err)
	var is struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	failtest.On(t, yaml.Unmarshal(text, &is))
	page, err := os.ReadFile("../../docs/guide/operations.md")
	failtest.On(t, err)
	list, alarmed, ages := inList(), map[string]bool{}, map[string]int{}
	for _, r := range is.Groups[0].Rules {
		for _, name := range names(r.Expr) {
			if list[name] == nil {
				t.Errorf("%s asks for %s, which is not in the list", r.Alert, name)
			}
			alarmed[name] = true
		}
		if !strings.Contains(r.Expr, `model=~"gallery|wardrobe"`) || r.Annotations["runbook"] == "" {
			t.Errorf("%s names no models or no section of the runbook: %s", r.Alert, r.Expr)
		}
		section := strings.TrimSuffix(r.Annotations["runbook"], " in docs/guide/operations.md")
		if !strings.Contains(string(page), "# "+section+"\n") {
			t.Errorf("%s names the section %q, which is not there", r.Alert, section)
		}
		for _, seconds := range []int{21600, 43200, 69120} {
			if strings.HasSuffix(r.Expr, fmt.Sprint(" > ", seconds)) {
				ages[names(r.Expr)[0]]++
			}
		}
	}
	for name, m := range list {
		if m.Ageing && ages[name] != 3 || !m.Ageing && ages[name] != 0 {
			t.Errorf("%s has %d alarms at a part of 24 hours", name, ages[name])
		}
		if (m.Runbook != "") != alarmed[name] {
			t.Errorf("%s has a section of the runbook: %q, and an alarm: %v", name, m.Runbook, alarmed[name])
		}
	}
}
