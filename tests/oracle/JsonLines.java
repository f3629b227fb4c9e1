import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** The loop that every oracle runs: a line of JSON in (stdin), a line of JSON out, flushed before the next is read. */
final class JsonLines {
    static final ObjectMapper JSON = new ObjectMapper();

    interface Answer {
        JsonNode to(JsonNode asked) throws Exception;
    }

    static void answer(Answer answer) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            out.println(JSON.writeValueAsString(answer.to(JSON.readTree(line))));
            out.flush();
        }
    }

    private JsonLines() { }
}
