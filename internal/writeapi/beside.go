package writeapi

import (
	"net/http"
	"strings"
)

// Beside serves this API and one that answers queries at the same address. A GET of a
// name that is both a query and an entity is the query; everything that only one of
// them knows is its own.
// The paths of this API are checked first, so queries sees only what is its own.
func (a *API) Beside(queries http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		model, name, two := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
		t := a.target(model)
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case r.URL.Path == "/openapi.json":
			a.ServeHTTP(w, r)
		case !two || t == nil || !strings.HasPrefix(r.URL.Path, "/v1/"):
			queries.ServeHTTP(w, r)
		case reads && t.Model.Query(name) == nil && t.entity(name) != nil:
			a.ServeHTTP(w, r)
		case !reads && (name == "batch" || t.entity(name) != nil || t.Model.Query(name) == nil):
			a.ServeHTTP(w, r)
		default:
			queries.ServeHTTP(w, r)
		}
	})
}
