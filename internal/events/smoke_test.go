package events
import ("testing";"strings";"fmt")
func dump(s string) { err := Read(strings.NewReader(s), "f", func(e Entry) error { if e.Bad!=nil { fmt.Printf("BAD %v %v raw=%q\n", e.Location, e.Bad, e.Bad.Raw)} else {fmt.Printf("%v %s %v keys=%s old=%s new=%s pos=%v t=%v exp=%v\n", e.Location, e.Record.Event(), e.Record.Table, js(e.Record.Keys), js(e.Record.Old), js(e.Record.New), e.Record.Position, e.Record.Time, e.Record.Expired)}; return nil}); fmt.Println("err:", err) }
func js(i interface{MarshalJSON()([]byte,error)}) string { b,_ := i.MarshalJSON(); return string(b)}
func TestSmoke(t *testing.T) {
 rec := func(n int) string { return fmt.Sprintf(`{"eventID":"%d","eventName":"INSERT","dynamodb":{"ApproximateCreationDateTime":1.7e9,"Keys":{"k":{"S":"%d"}},"NewImage":{"k":{"S":"%d"},"n":{"N":"1.50"}},"SequenceNumber":"%d"},"eventSourceARN":"arn:aws:dynamodb:x:1:table/t/stream/1"}`,n,n,n,n)}
 dump(`{"Records":[`+rec(1)+`,`+rec(2)+`]}`)
 dump(rec(1)+"\n"+rec(2)[:40]+"\n"+rec(3)+"\n")
 dump("[\n"+rec(1)+",\n"+strings.Replace(rec(2),`"k"`,`"k`,1)+",\n"+rec(3)+"\n]")
 dump("["+rec(1)+","+strings.Replace(rec(2),`1.7e9`,`1.7x9`,1)+","+rec(3)+"]")
 dump("["+rec(1)+","+strings.Replace(rec(2),`}}`,`}`,1)+","+rec(3)+"]")
 dump("["+rec(1)+","+strings.Replace(rec(2),`"N":"1.50"`,`"N":"abc"`,1)+","+rec(3)[:70])
 dump("{\"a\":1}\n{\"b\":2}")
 dump("a,b,c\n1,2,3")
 dump(`{"version":"1.0","DDBStreamBatchInfo":{"shardId":"s1","startSequenceNumber":"1","endSequenceNumber":"2","streamArn":"arn:aws:dynamodb:x:1:table/t9/stream/1"},"payload":"{\"Records\":[`+strings.ReplaceAll(rec(7),`"`,`\"`)+`]}"} {"DDBStreamBatchInfo":{"shardId":"s1","startSequenceNumber":"1","endSequenceNumber":"2","streamArn":"arn:aws:dynamodb:x:1:table/t9/stream/1"}}`)
}
