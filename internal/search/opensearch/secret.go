package opensearch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// keyed gives each request the name and password of a secret. It reads the secret for the first
// request, and again when the cluster refuses the password that it has: after a rotation. It may be
// used by many goroutines.
type keyed struct {
	next  http.RoundTripper
	value func(context.Context) (string, error)
	user  string // "" if the secret has it
	now   func() time.Time

	mu   sync.Mutex
	have login
	read time.Time // when the secret was asked for last
	said error     // the error instead of a login
}

// login is the content of a secret.
type login struct{ Username, Password string }

// A refused password is looked up this often at most: each look costs a request, and a cluster that
// denies a permission answers 403 for ever.
const readAgain = 10 * time.Second

// While there is no password, a secret that cannot be read is asked for this often at most: others get the last answer.
const failAgain = time.Second

// newKeyed sends nothing yet.
func newKeyed(ctx context.Context, next http.RoundTripper, user, arn string) (*keyed, error) {
	parts := strings.SplitN(arn, ":", 6)
	service, region := secretServices[parts[2]], parts[3]
	signer, err := newSigner(ctx, next, region, parts[2])
	if err != nil {
		return nil, err
	}
	at := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_"+service.env), os.Getenv("AWS_ENDPOINT_URL"))
	if at == "" {
		at = "https://" + parts[2] + "." + region + ".amazonaws.com"
		if parts[1] == "aws-cn" {
			at += ".cn"
		}
	}
	read := func(ctx context.Context) (string, error) { return service.getValue(ctx, signer, at, arn) }
	return &keyed{next: next, value: read, user: user, now: time.Now}, nil
}

// RoundTrip sends a request, and sends it once more if the cluster refuses a password that the secret has
// replaced. A secret that cannot be read is the error of the request.
func (k *keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	used, err := k.login(r.Context(), login{})
	if err != nil {
		return nil, err
	}
	for {
		out := withBody(r, body)
		out.SetBasicAuth(used.Username, used.Password)
		res, err := k.next.RoundTrip(out)
		if err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
			return res, err
		}
		now, err := k.login(r.Context(), used)
		if err != nil || now == used {
			return res, nil // the cluster's own answer says more
		}
		res.Body.Close()
		used = now
	}
}

// login is the name and password to use instead of those that the cluster refused: those that another request has read
// since, or those of the secret now.
func (k *keyed) login(ctx context.Context, refused login) (login, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.have != refused || refused != (login{}) && k.now().Sub(k.read) < readAgain {
		return k.have, nil
	}
	if k.said != nil && k.now().Sub(k.read) < failAgain {
		return login{}, k.said
	}
	l, err := k.ask(ctx)
	if ctx.Err() != nil { // which says nothing of the secret
		return login{}, err
	}
	if k.read, k.said = k.now(), err; err == nil {
		k.have = l
	}
	return l, err
}

// ask asks for the secret.
func (k *keyed) ask(ctx context.Context) (login, error) {
	text, err := k.value(ctx)
	if err != nil {
		return login{}, fmt.Errorf("the secret with the password of OpenSearch: %w", err)
	}
	l := login{Password: text}
	if strings.HasPrefix(text, "{") {
		l = login{}
		if json.Unmarshal([]byte(text), &l) != nil || l.Password == "" {
			return login{}, errors.New(`the secret with the password of OpenSearch is not {"username": …, "password": …}`)
		}
	}
	if l.Username = cmp.Or(k.user, l.Username); l.Username == "" {
		return login{}, errors.New("neither the URL of OpenSearch nor its secret has a user name: https://USER@HOST?secret=ARN")
	}
	return l, nil
}

// secretService is how a service of AWS is asked for a value: one signed request. The SDK's modules of both would
// make a function larger by far more than this.
type secretService struct{ env, target, id, more string }

// secretServices are by the name of the service in an ARN.
var secretServices = map[string]secretService{
	"secretsmanager": {env: "SECRETS_MANAGER", target: "secretsmanager.GetSecretValue", id: "SecretId"},
	"ssm":            {env: "SSM", target: "AmazonSSM.GetParameter", id: "Name", more: `,"WithDecryption":true`},
}

// isSecret reports whether an ARN is one of a secret, or of a parameter.
func isSecret(arn string) bool {
	p := strings.SplitN(arn, ":", 6)
	return len(p) == 6 && p[0] == "arn" && p[3] != "" && (p[2] == "secretsmanager" && strings.HasPrefix(p[5], "secret:") || p[2] == "ssm" && strings.HasPrefix(p[5], "parameter/"))
}

// secretTime is how long an answer may take.
const secretTime = 5 * time.Second

// getValue asks for the value of a secret. Errors have the service's own words, and never the value.
func (s secretService) getValue(ctx context.Context, signer *signer, at, arn string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	body := fmt.Appendf(nil, "{%q:%q%s}", s.id, arn, s.more)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", s.target)
	res, err := signer.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return "", err
	}
	var got struct {
		SecretString string
		Parameter    struct{ Value string }
		Type         string `json:"__type"`
		Message      string
	}
	_ = json.Unmarshal(text, &got) // the status says whether it is an answer
	if value := cmp.Or(got.SecretString, got.Parameter.Value); res.StatusCode == http.StatusOK && value != "" {
		return value, nil
	}
	return "", fmt.Errorf("%s of %s answers %d %s %s", s.target, arn, res.StatusCode, got.Type, got.Message)
}
