from services.recorder.app import main

main()
