package opensearch

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/failtest"
)

// secretWorld is a cluster that asks for a password, and the service that keeps it.
type secretWorld struct {
	password string // which the cluster takes, of the user weir
	kept     string // what the secret says, "" for an error
	reads    int
	asked    []string // of the service
	bodies   []string // that the cluster has taken
	denied   bool     // the cluster denies a permission
}

func (w *secretWorld) start(t *testing.T, url string) *server {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	keeper := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.reads++
		w.asked = append(w.asked, r.Header.Get("X-Amz-Target")+" "+string(body))
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=a/") {
			t.Error("the request for the secret is not signed")
		}
		if w.kept == "" {
			rw.WriteHeader(http.StatusBadRequest)
			io.WriteString(rw, `{"__type":"AccessDeniedException","Message":"no"}`)
			return
		}
		text, _ := json.Marshal(w.kept)
		io.WriteString(rw, `{"SecretString":`+string(text)+`,"Parameter":{"Value":`+string(text)+`}}`)
	}))
	t.Cleanup(keeper.Close)
	t.Setenv("AWS_ENDPOINT_URL", keeper.URL)
	cluster := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		switch {
		case user != "weir" || password != w.password:
			rw.WriteHeader(http.StatusUnauthorized)
		case w.denied:
			rw.WriteHeader(http.StatusForbidden)
		default:
			w.bodies = append(w.bodies, string(body))
			io.WriteString(rw, `{}`)
		}
	}))
	t.Cleanup(cluster.Close)
	target, err := ParseTarget(strings.Replace(url, "HOST", strings.TrimPrefix(cluster.URL, "http://"), 1))
	failtest.On(t, err)
	s, err := newClient(t.Context(), target, time.Minute)
	failtest.On(t, err)
	if w.reads > 0 {
		t.Error("connect reads the secret")
	}
	return s
}

// count is a request with a body.
func (w *secretWorld) count(t *testing.T, s *server) error {
	return s.sendOnce(t.Context(), nil, opensearchapi.CountRequest{Body: strings.NewReader("{}")})
}

// TestSecret: the password is read once, and again when the cluster refuses it; the request that it refused is sent again whole.
func TestSecret(t *testing.T) {
	w := &secretWorld{password: "one", kept: `{"username":"weir","password":"one"}`}
	s := w.start(t, "http://HOST?secret=arn:aws:secretsmanager:eu-west-1:1:secret:a-1")
	for range 3 {
		failtest.On(t, w.count(t, s))
	}
	if w.reads != 1 || w.asked[0] != `secretsmanager.GetSecretValue {"SecretId":"arn:aws:secretsmanager:eu-west-1:1:secret:a-1"}` {
		t.Errorf("%d reads: %q", w.reads, w.asked)
	}
	now := time.Now()
	s.keyed.now = func() time.Time { return now }
	now = now.Add(time.Hour)
	w.password, w.kept = "two", `{"username":"weir","password":"two"}`
	failtest.On(t, w.count(t, s))
	if w.reads != 2 || len(w.bodies) != 4 || w.bodies[3] != "{}" {
		t.Errorf("%d reads, %q", w.reads, w.bodies)
	}
	// A permission that is denied costs one look, and not one a request.
	now = now.Add(time.Hour)
	w.denied = true
	for range 3 {
		if err := w.count(t, s); !isStatus(err, http.StatusForbidden) {
			t.Error(err)
		}
	}
	if w.reads != 3 {
		t.Errorf("%d reads", w.reads)
	}
}

// TestParameter: a parameter is the password itself, of the user of the URL.
func TestParameter(t *testing.T) {
	w := &secretWorld{password: "one", kept: "one"}
	s := w.start(t, "http://weir@HOST?secret=arn:aws:ssm:eu-west-1:1:parameter/weir/password")
	failtest.On(t, w.count(t, s))
	if w.asked[0] != `AmazonSSM.GetParameter {"Name":"arn:aws:ssm:eu-west-1:1:parameter/weir/password","WithDecryption":true}` {
		t.Errorf("%q", w.asked)
	}
}

// TestSecretRefused: each reason why there is no password is said, without the password.
func TestSecretRefused(t *testing.T) {
	for kept, want := range map[string]string{
		"":                      "AccessDeniedException no",
		"hunter2":               "neither the URL of OpenSearch nor its secret has a user name",
		`{"username":"hunter2"`: "is not {",
		`{"key":"hunter2"}`:     "is not {",
	} {
		w := &secretWorld{password: "one", kept: kept}
		s := w.start(t, "http://HOST?secret=arn:aws:secretsmanager:eu-west-1:1:secret:a-1")
		err := w.count(t, s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", kept, err)
		}
	}
}

// TestSecretIsAskedSeldom: a secret that cannot be read costs no look for each request, neither before the first password nor after
// the cluster has refused it.
func TestSecretIsAskedSeldom(t *testing.T) {
	w := &secretWorld{password: "one"}
	s := w.start(t, "http://HOST?secret=arn:aws:secretsmanager:eu-west-1:1:secret:a-1")
	now := time.Now()
	s.keyed.now = func() time.Time { return now }
	for range 3 {
		if err := w.count(t, s); err == nil || !strings.Contains(err.Error(), "AccessDeniedException") {
			t.Error(err)
		}
	}
	if w.reads != 1 {
		t.Errorf("%d reads without a password", w.reads)
	}
	now, w.kept = now.Add(failAgain), `{"username":"weir","password":"one"}`
	failtest.On(t, w.count(t, s))
	now, w.kept, w.password, w.reads = now.Add(time.Hour), "", "two", 0
	for range 3 {
		if err := w.count(t, s); !isStatus(err, http.StatusUnauthorized) {
			t.Error(err)
		}
	}
	if w.reads != 1 {
		t.Errorf("%d reads with a refused password", w.reads)
	}
	now, w.kept = now.Add(readAgain), `{"username":"weir","password":"two"}`
	failtest.On(t, w.count(t, s))
}

// TestSecretInItsPlace: a password where the ARN of a secret should be is in no error.
func TestSecretInItsPlace(t *testing.T) {
	for _, in := range []string{"https://h?secret=hunter2", "https://u@h?secret=hunter2", "https://u@h?secret=p@hunter2", "https://u@h?sign=x&password=hunter2"} {
		if _, err := ParseTarget(in); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", in, err)
		}
	}
}
